"""The judgement on the database: plain SQL against what the campaign knows it has done."""

import uuid
from collections import Counter, defaultdict
from typing import Any

import psycopg

from chaos.ledger import Answer, Ledger
from chaos.verdict import Verdict

Row = dict[str, Any]

_PURCHASES = """
SELECT id, status, version, ends_at <= %(now)s::timestamptz AS due,
       extract(epoch FROM ends_at)::float8 AS ends_at, extract(epoch FROM updated_at)::float8 AS updated_at
FROM promotion.promotion_purchases
"""
_EVENTS = """
SELECT id, event_id, aggregate_id, topic, key, payload, headers, payload::json ->> 'status' AS status,
       (payload::json ->> 'version')::int AS version, parked_at IS NOT NULL AS parked,
       published_at IS NOT NULL AS published, extract(epoch FROM created_at)::float8 AS created_at
FROM promotion.outbox ORDER BY id
"""
_AUDITED = "SELECT object_id::uuid AS id FROM django_admin_log WHERE starts_with(change_message, 'Cancelled: ')"
_LEFT = """
SELECT 'connection ' || application_name || ' ' || coalesce(state, '') FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
UNION ALL
SELECT 'lock ' || locktype || ' ' || mode FROM pg_locks
 WHERE pid <> pg_backend_pid() AND locktype IN ('transactionid', 'tuple')
UNION ALL
SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts
"""


class State:
    """The database as it stands at the end."""

    def __init__(self, connection: psycopg.Connection) -> None:
        now = connection.execute("SELECT now()").fetchone()
        self.purchases = {row["id"]: row for row in _rows(connection, _PURCHASES, {"now": now[0] if now else None})}
        self.events = _rows(connection, _EVENTS, {})
        self.events_of: defaultdict[uuid.UUID, list[Row]] = defaultdict(list)
        for event in self.events:
            self.events_of[event["aggregate_id"]].append(event)
        self.stuck = [
            row["purchase_id"] for row in _rows(connection, "SELECT purchase_id FROM promotion.expiration_failures", {})
        ]
        self.audited = {row["id"] for row in _rows(connection, _AUDITED, {})}  # cancelled by an operator
        self.left = [row["?column?"] for row in _rows(connection, _LEFT, {})]


def _rows(connection: psycopg.Connection, query: str, values: dict[str, Any]) -> list[Row]:
    cursor = connection.execute(query, values)
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def check(state: State, ledger: Ledger, verdict: Verdict) -> None:
    """Judge purchases, events, answers and leftovers."""
    rows = state.purchases
    terminal = {"Expired", "Cancelled"}
    verdict.judge("no purchase lost, none invented", [str(id_) for id_ in ledger.created ^ rows.keys()])
    verdict.judge(
        "every due purchase is terminal",
        [f"{id_} is {row['status']}" for id_, row in rows.items() if row["due"] and row["status"] not in terminal],
    )
    verdict.judge("nothing expires early, by the program's clock or the database's", _early(state))
    verdict.judge("one event for each change, none for both endings", _event_breaches(state))
    verdict.judge("version = 1 + number of changes", _version_breaches(state, ledger))
    verdict.judge(
        "nothing pending, nothing parked", [str(e["id"]) for e in state.events if e["parked"] or not e["published"]]
    )
    verdict.judge("no purchase is held for poison any more", [str(id_) for id_ in state.stuck])
    verdict.judge("no connection, lock or transaction is left", state.left)
    verdict.judge(
        "each manager was told the truth", [text for answer in ledger.answers for text in _lies(answer, rows)]
    )
    done = {answer.purchase for answer in ledger.answers if answer.asked == "operator" and answer.status == 200}
    verdict.judge(
        "the audit log has what operators have cancelled, and nothing else",
        [
            *(f"{id_} is not in it" for id_ in done - state.audited),
            *(f"{id_} is {rows[id_]['status']}" for id_ in state.audited if rows[id_]["status"] != "Cancelled"),
        ],
    )
    statuses = Counter(row["status"] for row in rows.values())
    answers = Counter(answer.status for answer in ledger.answers)
    verdict.figures.append(
        "purchases: " + ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
    )
    verdict.figures.append(
        f"prolonged: {ledger.changes.total():,}; cancelled by an operator: {len(state.audited):,}; "
        f"events: {len(state.events):,}"
    )
    verdict.figures.append(
        "answers to managers: "
        + ", ".join(f"{count} x {status or 'none'}" for status, count in sorted(answers.items()))
    )


def _early(state: State) -> list[str]:
    """Return the expiries before the end; after its end, nothing moves it any more."""
    early = []
    for id_, row in state.purchases.items():
        told = [event["created_at"] for event in state.events_of[id_] if event["status"] == "Expired"]
        if row["status"] == "Expired" and (before := row["ends_at"] - min([row["updated_at"], *told])) > 0:
            early.append(f"{id_}: by {before:.3f} s")
    return early


def _event_breaches(state: State) -> list[str]:
    breaches = []
    for id_, row in state.purchases.items():
        endings = [event["status"] for event in state.events_of[id_] if event["status"] != "Active"]
        expected = [row["status"]] if row["status"] != "Active" else []
        if endings != expected:
            breaches.append(f"{id_} is {row['status']}, its endings told are {endings}")
        versions = [event["version"] for event in state.events_of[id_]]
        if versions != sorted(set(versions)) or (versions and versions[-1] != row["version"]):
            breaches.append(f"{id_} has version {row['version']}, its events have {versions}")
    return breaches


def _version_breaches(state: State, ledger: Ledger) -> list[str]:
    expected = {
        id_: 1 + ledger.changes[id_] + (row["status"] in {"Expired", "Cancelled"})
        for id_, row in state.purchases.items()
    }
    return [
        f"{id_} has version {row['version']}, not {expected[id_]}"
        for id_, row in state.purchases.items()
        if row["version"] != expected[id_]
    ]


def _lies(answer: Answer, rows: dict[uuid.UUID, Row]) -> list[str]:
    """Return what is wrong with one answer."""
    row = rows[answer.purchase]
    allowed = {
        "cancel": {0, 200, 409, 503},
        "cancel-version": {0, 200, 409, 412, 503},
        "cancel-stale-version": {0, 409, 412, 503},
        "other-company": {0, 404, 503},
        "no-token": {0, 401},
        "operator": {0, 200, 409, 412, 503},
    }[answer.asked]
    wrong = []
    if answer.status not in allowed:
        wrong.append(f"{answer.asked} of {answer.purchase} was answered by {answer.status}")
    if answer.status == 200 and (row["status"], row["version"]) != ("Cancelled", answer.version):
        wrong.append(
            f"{answer.purchase} was said to be Cancelled, version {answer.version}; "
            f"it is {row['status']}, version {row['version']}"
        )
    if answer.status == 200 and answer.expected_version is not None and answer.version != answer.expected_version + 1:
        wrong.append(f"{answer.purchase}: If-Match {answer.expected_version} was taken for version {answer.version}")
    if answer.status == 409 and row["status"] == "Active":
        wrong.append(f"{answer.purchase} was said to have ended; it is Active")
    return wrong
