"""How PostgreSQL finds its way at 50,000 due purchases: by the partial index, without a sort."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from promotion.claiming import Candidates, Place
from promotion.models import EARLIEST
from promotion.outlook import look_ahead
from tests.explained import explained
from tests.factories import NOW

pytestmark = pytest.mark.django_db

MANY = """
INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
SELECT gen_random_uuid(), 'Boost', CASE WHEN number % 2 = 0 THEN 'Active' ELSE 'Expired' END,
       '2025-01-01Z', '2026-01-01Z'::timestamptz + number * interval '1 second'
FROM generate_series(1, 100000) AS number;
ANALYZE promotion.promotion_purchases;
"""


STUCK = """
INSERT INTO promotion.expiration_failures (purchase_id, first_failed_at, last_failed_at, attempts, reason)
SELECT id, '2026-01-01Z', '2026-01-01Z', 1, '' FROM promotion.promotion_purchases
WHERE status = 'Active' ORDER BY ends_at LIMIT %s;
"""
NEVER_ANALYSED = """
TRUNCATE promotion.promotion_purchases, promotion.promotion_purchase_targets, promotion.expiration_failures;
DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'promotion'::regnamespace);
"""
NEXT_200 = Candidates(at=NOW, after=Place.before(datetime(2026, 1, 1, tzinfo=UTC)))


def test_a_batch_walks_the_partial_index_however_many_are_stuck():
    with connection.cursor() as cursor:
        cursor.execute(MANY)
        walks_the_index()
        cursor.execute(STUCK, [3_000])
    walks_the_index()


def test_a_try_of_the_stuck_looks_at_these_alone():
    with connection.cursor() as cursor:
        cursor.execute(MANY)
        cursor.execute(STUCK, [3_000])
        stuck = look_ahead(NOW, retries=50).stuck
        with explained() as plans:
            assert len(Candidates(at=NOW, after=Place.before(EARLIEST), among=stuck).lock(50).purchases) == 50
    plan, _count = plans
    assert "promotion_purchases_pkey" in plan
    assert "Seq Scan" not in plan


def test_a_table_that_was_never_analysed():
    """Right after a restore: the planner has nothing but guesses, and must take the same way."""
    with connection.cursor() as cursor:
        cursor.execute(NEVER_ANALYSED)
        cursor.execute(MANY.partition("ANALYZE")[0].replace("100000", "200000"))
        cursor.execute("SELECT reltuples FROM pg_class WHERE oid = 'promotion.promotion_purchases'::regclass")
        assert cursor.fetchone() == (-1,)
    walks_the_index()


FEW = """
INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
SELECT gen_random_uuid(), 'Boost', CASE WHEN number >= 90000 AND number < 92000 THEN 'Active' ELSE 'Expired' END,
       '2025-01-01Z', '2026-01-01Z'::timestamptz + number * interval '1 second'
FROM (SELECT number * 7919 % 100000 FROM generate_series(1, 100000::bigint) AS number) AS shuffled (number);
ANALYZE promotion.promotion_purchases;
"""


def test_few_that_are_due_among_many_that_have_expired():
    """They stand all over the table, and the planner expects fewer of them than there are: it would sort them."""
    with connection.cursor() as cursor:
        cursor.execute(FEW)
    walks_the_index(replace(NEXT_200, after=Place.before(NEXT_200.after.ends_at + timedelta(seconds=90_000))))


def walks_the_index(candidates=NEXT_200):
    with explained() as plans:
        look_ahead(NOW, retries=1_000)
        claim = candidates.lock(200)
    assert (len(claim.purchases), claim.skipped) == (200, 0)
    assert len(plans) == 3
    for plan in plans:
        assert "purchases_due" in plan
        assert "Sort Key: promotion_purchases" not in plan  # the few stuck may be sorted
        assert "Seq Scan on promotion_purchases" not in plan
