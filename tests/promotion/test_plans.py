"""How PostgreSQL finds its way at 50,000 due purchases: by the partial index, without a sort."""

import re

import pytest
from django.db import connection

from promotion.models import PromotionPurchase
from tests.factories import NOW

pytestmark = pytest.mark.django_db

MANY = """
INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
SELECT gen_random_uuid(), 'Boost', CASE WHEN number % 2 = 0 THEN 'Active' ELSE 'Expired' END,
       '2025-01-01Z', '2026-01-01Z'::timestamptz + number * interval '1 second'
FROM generate_series(1, 100000) AS number;
ANALYZE promotion.promotion_purchases;
"""


def plan(queryset):
    sql, parameters = queryset.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (COSTS OFF) {sql}", parameters)
        return "\n".join(line for (line,) in cursor.fetchall())


def test_the_claim_and_its_count_walk_the_partial_index():
    with connection.cursor() as cursor:
        cursor.execute(MANY)
    candidates = PromotionPurchase.objects.due(NOW).not_stuck()
    claim = candidates.oldest_first().select_for_update(skip_locked=True)[:200]
    last = candidates.oldest_first()[199]
    for plan_text in (plan(claim), plan(candidates.up_to(last))):
        assert "purchases_due" in plan_text
        assert "Sort" not in plan_text
        assert not re.search(r"Seq Scan on promotion_purchases\b", plan_text)
    assert "SKIP LOCKED" in claim.query.sql_with_params()[0]
    assert "JOIN" not in claim.query.sql_with_params()[0]
