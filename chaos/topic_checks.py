"""The judgement on the topic and on what consumers made of it."""

import sqlite3
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import psycopg

from chaos.ledger import Ledger
from chaos.records import Record
from chaos.state_checks import State
from chaos.verdict import Verdict

_TRUE_BOOSTS = """
SELECT DISTINCT t.purchase_id::text, t.target_id::text
FROM promotion.promotion_purchase_targets t JOIN promotion.promotion_purchases p ON p.id = t.purchase_id
WHERE p.status = 'Active' AND t.target_type = %s
"""


def check(state: State, records: list[Record], ledger: Ledger, verdict: Verdict) -> None:
    """Compare the outbox with the topic, both ways."""
    recorded = {str(event["event_id"]): event for event in state.events}
    copies: defaultdict[str, list[Record]] = defaultdict(list)
    strangers = []
    for record in records:
        event_id = record.headers.get("ce_id", "")
        if event_id in recorded:
            copies[event_id].append(record)
        else:
            strangers.append(f"{record.partition}/{record.offset} {record.value[:80]}")
    verdict.judge(
        "every event is in the topic",
        [f"{e} of {recorded[e]['aggregate_id']}" for e in recorded.keys() - copies.keys()],
    )
    verdict.judge("the topic holds nothing else (no event of a change that was rolled back)", strangers)
    verdict.judge(
        "byte for byte what was recorded",
        [
            event_id
            for event_id, found in copies.items()
            for record in found
            if (record.topic, record.value, record.key, record.headers) != _as_recorded(recorded[event_id])
        ],
    )
    verdict.judge("first appearances of each key are in order", _order_breaches(state, copies, ledger))
    verdict.figures.append(f"messages in the topics: {len(records):,}, repeated {len(records) - len(copies):,}")


def _as_recorded(event: dict[str, object]) -> tuple[object, ...]:
    return event["topic"], event["payload"], event["key"], event["headers"]


def _order_breaches(state: State, copies: dict[str, list[Record]], ledger: Ledger) -> list[str]:
    """Return the keys out of order, but for those of which an operator has requeued messages."""
    breaches = []
    for key, events in state.events_of.items():
        firsts = [
            min((record.partition, record.offset) for record in copies[str(event["event_id"])])
            for event in events
            if str(event["event_id"]) in copies
        ]
        swapped = [f"{before} before {after}" for before, after in pairwise(firsts) if before > after]
        if len({partition for partition, _ in firsts}) > 1:
            breaches.append(f"{key} is spread over partitions")
        elif swapped and str(key) not in ledger.unordered:
            breaches.append(f"{key}: {', '.join(swapped[:5])}")
    return breaches


def true_boosts(connection: psycopg.Connection, kind: str) -> set[tuple[str, str]]:
    """Return pairs of purchase and target that are boosted, as the database has it."""
    return {(row[0], row[1]) for row in connection.execute(_TRUE_BOOSTS, [kind])}


def believed_boosts(path: Path) -> set[tuple[str, str]]:
    """Return the pairs that a consumer believes in."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as store:
        return set(store.execute("SELECT purchase, target FROM boosts"))


def check_boosts(connection: psycopg.Connection, kind: str, path: Path, verdict: Verdict) -> None:
    """Compare a consumer's belief with the truth, both ways."""
    truth = true_boosts(connection, kind)
    belief = believed_boosts(path)
    verdict.judge(
        f"the consumer of {kind} knows every boost",
        [*(f"missing {pair}" for pair in truth - belief), *(f"stale {pair}" for pair in belief - truth)],
    )
    verdict.figures.append(f"boosts of {kind} in force: {len(truth):,}")
