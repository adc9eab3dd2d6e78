"""The operators' lists stay fast on large tables: by an index each, few queries, and no count to the end."""

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pinpromo import adminpages
from tests.operators import Person

pytestmark = pytest.mark.django_db
PURCHASES, MESSAGES = "/admin/promotion/promotionpurchase/", "/admin/outbox/outbox/"
SOME = uuid.UUID(int=5)

# Emptied first: rows that other tests rolled back would still count for the planner.
MANY = """
TRUNCATE promotion.promotion_purchases, promotion.outbox CASCADE;
INSERT INTO promotion.promotion_purchases (id, tenant_id, package_kind, status, starts_at, ends_at)
SELECT lpad(to_hex(number), 32, '0')::uuid, lpad(to_hex(number % 2000), 32, '0')::uuid, 'Boost',
       CASE WHEN number % 4 = 0 THEN 'Active' ELSE 'Expired' END, '2026-01-01Z',
       now() + (number - 10000) * interval '10 seconds'
FROM generate_series(1, 40000) AS number;
INSERT INTO promotion.outbox (event_type, aggregate_id, topic, key, payload, published_at, parked_at, skipped_at)
SELECT 'X', lpad(to_hex(number), 32, '0')::uuid, 't', number::text, '{}',
       CASE WHEN number % 50 > 1 THEN now() END, CASE WHEN number % 50 = 1 THEN now() END,
       CASE WHEN number % 500 = 1 THEN now() END
FROM generate_series(1, 40000) AS number;
ANALYZE promotion.promotion_purchases, promotion.outbox;
"""


@pytest.fixture
def operator():
    with connection.cursor() as cursor:
        cursor.execute(MANY)
    return Person("Operator")


def plans_of(queries):
    with connection.cursor() as cursor:
        for query in queries:
            if '"promotion"."' in query["sql"]:
                cursor.execute("EXPLAIN " + query["sql"])
                yield "\n".join(line for (line,) in cursor.fetchall())


def test_each_list_is_read_by_an_index(operator):
    for page in [
        "/admin/",
        PURCHASES,
        f"{PURCHASES}?end=overdue",
        f"{PURCHASES}?end=hour",
        f"{PURCHASES}?q={SOME}",
        f"{PURCHASES}?status=expired&tenant_id={SOME}",
        f"{PURCHASES}{SOME}/change/",
        MESSAGES,
        f"{MESSAGES}?state=pending",
        f"{MESSAGES}?state=parked",
        f"{MESSAGES}?state=skipped",
        f"{MESSAGES}?state=published",
        f"{MESSAGES}?q={SOME}",
    ]:
        with CaptureQueriesContext(connection) as queries:
            assert operator.get(page).status_code == 200
        assert len(queries) <= 16, page
        for query, plan in zip(
            [query for query in queries.captured_queries if '"promotion"."' in query["sql"]],
            plans_of(queries.captured_queries),
            strict=True,
        ):
            if " LIMIT " not in query["sql"] or "ORDER BY" in query["sql"]:  # a bounded count may stop early anywhere
                assert "Seq Scan on promotion_purchases" not in plan, (page, plan)
                assert "Seq Scan on outbox" not in plan, (page, plan)


def test_no_list_counts_to_the_end(operator, monkeypatch):
    monkeypatch.setattr(adminpages, "COUNTED", 1_000)
    with CaptureQueriesContext(connection) as queries:
        response = operator.get(PURCHASES)
    assert "1,000+ purchases" in response.text
    counts = [query["sql"] for query in queries.captured_queries if "COUNT(" in query["sql"]]
    assert len(counts) == 1
    assert "LIMIT 1001" in counts[0]
