"""What every test may rely on: an empty schema `promotion`, with its 64 lanes."""

import pytest
from django.db import connection

pytest_plugins = ["tests.brokers"]

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'promotion' AND tablename <> 'outbox_lanes'"


@pytest.fixture(autouse=True)
def _empty_schema_after_commits(request, django_db_blocker):
    """Django's flush does not see tables outside the search_path, so what was committed is emptied here."""
    yield
    marker = request.node.get_closest_marker("django_db")
    committed = (marker and marker.kwargs.get("transaction")) or "transactional_db" in request.fixturenames
    if committed:
        with django_db_blocker.unblock(), connection.cursor() as cursor:
            cursor.execute(_TABLES)
            tables = ", ".join(f"promotion.{table}" for (table,) in cursor.fetchall())
            cursor.execute("SET lock_timeout = '10s'")  # a test that left a transaction open fails, and does not hang
            cursor.execute(f"TRUNCATE {tables} RESTART IDENTITY")
            cursor.execute("RESET lock_timeout")
            cursor.execute("DROP FUNCTION IF EXISTS public.test_hostile CASCADE")
