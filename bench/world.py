"""A throw-away PostgreSQL with its defaults (fsync on), migrated, and filled by plain SQL."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from devstack.postgres import EmbeddedPostgres

FILL = """
INSERT INTO promotion.promotion_purchases
    (id, tenant_id, package_kind, status, payment_status, starts_at, ends_at, version)
SELECT gen_random_uuid(), gen_random_uuid(), (ARRAY['Boost', 'Top', 'Highlight'])[1 + number % 3], %(status)s,
       (ARRAY['NotRequired', 'Paid', 'Refunded'])[1 + number %% 3], ends_at - interval '7 days', ends_at, 2
FROM generate_series(1, %(count)s) AS number, LATERAL (SELECT now() + %(start)s * interval '1 second'
     + number * %(step)s * interval '1 second' AS ends_at) AS ends
""".replace("number % 3], %(status)s", "number %% 3], %(status)s")

TARGETS = """
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, (ARRAY['CatalogItem', 'NewsPost'])[number], gen_random_uuid()
FROM promotion.promotion_purchases, generate_series(1, 2) AS number
WHERE NOT EXISTS (SELECT FROM promotion.promotion_purchase_targets WHERE purchase_id = promotion_purchases.id)
"""


@contextmanager
def database(**options: str) -> Iterator[str]:
    """Run a server, set Django up on it and migrate; yield its URL."""
    with EmbeddedPostgres(options=options) as server:
        os.environ.update(
            DATABASE_URL=server.url,
            SECRET_KEY=secrets.token_urlsafe(50),
            PINPROMO_ENV_FILE="",
            DJANGO_SETTINGS_MODULE="pinpromo.settings",
        )
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        yield server.url


def fill(*, due: int = 0, running: int = 0, expired: int = 0) -> None:
    """Add purchases with two targets each: due since up to an hour, running for a month and more, long expired."""
    from django.db import connection

    with connection.cursor() as cursor:
        if due:
            cursor.execute(FILL, {"status": "Active", "count": due, "start": -3600, "step": 3500 / due})
        if running:
            cursor.execute(FILL, {"status": "Active", "count": running, "start": 30 * 86400, "step": 1})
        if expired:
            cursor.execute(FILL, {"status": "Expired", "count": expired, "start": -300 * 86400, "step": 1})
        cursor.execute(TARGETS)
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")


def empty() -> None:
    """Remove all purchases and messages."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE promotion.promotion_purchases, promotion.promotion_purchase_targets,"
            " promotion.expiration_failures, promotion.outbox"
        )
