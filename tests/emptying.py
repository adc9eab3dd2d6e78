"""Empties the schema `promotion` but for its 64 lanes: Django's flush does not see tables outside the search_path."""

from django.db import connection

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'promotion' AND tablename <> 'outbox_lanes'"


def empty_schema():
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        tables = ", ".join(f"promotion.{table}" for (table,) in cursor.fetchall())
        cursor.execute("SET lock_timeout = '10s'")  # a test that left a transaction open fails, and does not hang
        cursor.execute(f"TRUNCATE {tables} RESTART IDENTITY")
        cursor.execute("RESET lock_timeout")
        cursor.execute("DROP FUNCTION IF EXISTS public.test_hostile CASCADE")
