"""What a scrape costs: only what is due or pending is looked at, by an index."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import outbox.gauges
import promotion.gauges
from tests.factories import NOW

pytestmark = pytest.mark.django_db

# Emptied first: rows that other tests rolled back would still count for the planner.
MANY = """
TRUNCATE promotion.promotion_purchases, promotion.outbox CASCADE;
INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
SELECT gen_random_uuid(), 'Boost', CASE WHEN number % 50 = 0 THEN 'Active' ELSE 'Expired' END,
       '2025-01-01Z', '2026-01-15Z'::timestamptz + number * interval '1 second'
FROM generate_series(1, 50000) AS number;
INSERT INTO promotion.outbox (event_type, aggregate_id, topic, key, payload, published_at)
SELECT '', gen_random_uuid(), 'topic', number::text, repeat('x', 600), CASE WHEN number % 10 > 0 THEN now() END
FROM generate_series(1, 20000) AS number;
ANALYZE promotion.promotion_purchases, promotion.outbox;
"""


def plans_of(read):
    with CaptureQueriesContext(connection) as captured:
        list(read(NOW))
    statements = [query["sql"] for query in captured.captured_queries]
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(f"EXPLAIN {statement}")
            yield "\n".join(line for (line,) in cursor.fetchall())


def test_gauges_read_by_their_indexes():
    with connection.cursor() as cursor:
        cursor.execute(MANY)
    backlog, oldest, stuck = plans_of(promotion.gauges.read)
    pending, parked = plans_of(outbox.gauges.read)

    for plan in (backlog, oldest, stuck, pending, parked):
        assert "Seq Scan on promotion_purchases" not in plan
        assert "Seq Scan on outbox" not in plan
    assert "purchases_due" in backlog
    assert "purchases_due" in oldest
    assert "outbox_pending_by_topic" in pending
