"""A throw-away PostgreSQL with its defaults (fsync on), with several databases, filled by plain SQL."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from devstack.postgres import EmbeddedPostgres

FILL = """
INSERT INTO promotion.promotion_purchases
    (id, tenant_id, package_kind, status, payment_status, starts_at, ends_at, version)
SELECT gen_random_uuid(), gen_random_uuid(), (ARRAY['Boost', 'Top', 'Highlight'])[1 + number %% 3], %(status)s,
       (ARRAY['NotRequired', 'Paid', 'Refunded'])[1 + number %% 3], ends_at - interval '7 days', ends_at, 2
FROM generate_series(1, %(count)s) AS number, LATERAL (
    SELECT now() + (%(start)s + number * %(step)s) * interval '1 second' AS ends_at
) AS ends
"""
ADD_TARGETS = """
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, (ARRAY['CatalogItem', 'NewsPost'])[number], gen_random_uuid()
FROM promotion.promotion_purchases AS purchase, generate_series(1, 2) AS number
WHERE NOT EXISTS (SELECT FROM promotion.promotion_purchase_targets WHERE purchase_id = purchase.id)
"""
EMPTY = "empty"  # a database of which the others are copies
HOUR, DAY = 3_600, 86_400
TABLES = ("promotion.promotion_purchases", "promotion.promotion_purchase_targets")
MANY = 100_000  # rows from which on it is faster to build the indexes afterwards


@contextmanager
def database() -> Iterator[str]:
    """Run a server, set Django up on it and migrate its first database; yield that one's URL."""
    with EmbeddedPostgres() as postgres:
        os.environ.update(
            DATABASE_URL=postgres.url,
            SECRET_KEY=secrets.token_urlsafe(50),
            PINPROMO_ENV_FILE="",
            DJANGO_SETTINGS_MODULE="pinpromo.settings",
        )
        import django
        from django.core.management import call_command
        from django.db import connection

        django.setup()
        call_command("migrate", verbosity=0)
        first = connection.settings_dict["NAME"]
        execute(f"CREATE DATABASE {EMPTY} TEMPLATE {first}", database="postgres")
        use(first)
        yield postgres.url


def create(name: str) -> None:
    """Create a database `name` of the same schema, without rows, and use it."""
    execute(f"CREATE DATABASE {name} TEMPLATE {EMPTY}", database="postgres")
    use(name)


def drop(name: str) -> None:
    """Remove the database `name`, and give its space back."""
    execute(f"DROP DATABASE {name} WITH (FORCE)", database="postgres")


def use(name: str) -> None:
    """Let Django's connection lead to the database `name`, ready for the next statement."""
    from django.db import connection

    if connection.settings_dict["NAME"] != name or connection.connection is None:
        connection.close()
        connection.settings_dict["NAME"] = name
    execute("SELECT 1")


def warming(run: Callable[[], object]) -> Callable[[str], None]:
    """Return what turns to a database and calls `run` there once: after the change, caches are cold."""

    def warm(name: str) -> None:
        use(name)
        run()

    return warm


def url_of(url: str, name: str) -> str:
    """Return `url` with the database `name` in it."""
    return f"{url.rpartition('/')[0]}/{name}"


def execute(sql: str, parameters: Any = None, *, database: str | None = None) -> None:
    """Run statements on Django's connection."""
    from django.db import connection

    if database:
        use(database)
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


def ask(sql: str) -> object:
    """Return the one value that a statement gives."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def fill(*, due: int = 0, running: int = 0, expired: int = 0, settle: bool = True) -> None:
    """Add purchases with two targets each: due since up to an hour, running for a month or more, long expired."""
    from bench.bulk import without_indexes

    with without_indexes(*TABLES) if due + running + expired >= MANY else nullcontext():
        for status, count, start, step in (
            ("Active", due, -HOUR, 3_500 / max(due, 1)),
            ("Active", running, 30 * DAY, 1),
            ("Expired", expired, -300 * DAY, 1),
        ):
            if count:
                execute(FILL, {"status": status, "count": count, "start": start, "step": step})
        execute(ADD_TARGETS)
    execute("VACUUM ANALYZE" if settle else "ANALYZE")
    execute("CHECKPOINT")


def leave_dead_entries(count: int) -> None:
    """Let `count` purchases expire that were due before all others, and never vacuum after them."""
    execute("ALTER TABLE promotion.promotion_purchases SET (autovacuum_enabled = off)")
    execute(FILL, {"status": "Active", "count": count, "start": -30 * DAY, "step": 1})
    execute("ANALYZE promotion.promotion_purchases")
    execute(
        "UPDATE promotion.promotion_purchases SET status = 'Expired', updated_at = now(), version = version + 1"
        " WHERE status = 'Active' AND ends_at < now() - interval '2 hours'"
    )
