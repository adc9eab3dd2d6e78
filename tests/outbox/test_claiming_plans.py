"""The claim looks at a bounded number of rows, whatever the statistics say of the table: few pending among many."""

import pytest
from django.db import connection, transaction

from outbox import claiming
from outbox.models import Outbox
from tests.outbox.test_claiming import NOW, SOON

pytestmark = pytest.mark.django_db

PUBLISHED, BACKLOG, WAITING, BATCH = 30_000, 6_000, 500, 100
INSERT = """
INSERT INTO promotion.outbox (event_type, aggregate_id, topic, key, payload, published_at, next_attempt_at)
SELECT 't', gen_random_uuid(), 't', %s || number, '{}', %s, %s FROM generate_series(1, %s) AS number
"""


def execute(statement, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)


def never_analysed():
    execute(INSERT, "old", NOW, None, PUBLISHED)


def a_quiet_week():
    """Nothing was pending when the statistics were made."""
    execute(INSERT, "old", NOW, None, PUBLISHED)
    execute("ANALYZE promotion.outbox")


def a_great_backlog():
    """Everything was."""
    execute(INSERT, "old", None, None, PUBLISHED)
    execute("ANALYZE promotion.outbox")
    execute("UPDATE promotion.outbox SET published_at = now()")


def an_ordinary_day():
    execute(INSERT, "old", NOW, None, PUBLISHED)
    execute(INSERT, "seen", None, None, 200)
    execute("ANALYZE promotion.outbox")


@pytest.fixture
def explained(monkeypatch):
    """The rows that each statement of a claim looked at, and the indexes it went by."""
    looks, rows = [], claiming._rows

    def explain(statement, **parameters):
        found = rows(statement, **parameters)
        with connection.cursor() as cursor:
            bare = statement.replace(claiming._PLANNING, "")
            cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {bare}", parameters)
            looks.append(looked_at(cursor.fetchone()[0][0]["Plan"]))
        return found

    monkeypatch.setattr(claiming, "_rows", explain)
    return looks


def looked_at(node):
    """Return the number of rows of the outbox that were looked at, and how."""
    count, ways = 0, set()
    if node.get("Relation Name") == "outbox":
        count = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        ways = {node.get("Index Name", node["Node Type"])}
    for child in node.get("Plans", []):
        more, others = looked_at(child)
        count, ways = count + more, ways | others
    return count, ways


@pytest.mark.parametrize("past", [never_analysed, a_quiet_week, a_great_backlog, an_ordinary_day])
def test_claim_goes_by_its_index_and_looks_at_few_rows(explained, past):
    past()
    execute(INSERT, "waiting", None, SOON, WAITING)
    execute(INSERT, "new", None, None, BACKLOG)

    with transaction.atomic():
        assert len(claiming.claim(BATCH, at=NOW)) == BATCH

    assert Outbox.objects.count() >= PUBLISHED + BACKLOG + WAITING
    assert len(explained) == 2
    for count, ways in explained:
        assert ways == {"outbox_pending", "outbox_waiting"}
        assert count < 2 * WAITING + 10 * BATCH
