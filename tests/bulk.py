"""Purchases in numbers for which a factory is too slow."""

from django.db import connection

_DUE = """
WITH purchase AS (
    INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
    SELECT gen_random_uuid(), 'Boost', 'Active', '2025-01-01Z', '2026-01-01Z'::timestamptz + number * interval '1 s'
    FROM generate_series(1, %s) AS number RETURNING id
)
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, 'NewsPost', gen_random_uuid() FROM purchase
"""


def insert_due(number):
    """Insert so many purchases that are due at tests.factories.NOW, each with one target."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [number])
