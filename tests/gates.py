"""Stops real transactions at a chosen statement, by advisory locks: other sessions can then do their worst."""

import contextlib

import psycopg
from django.db import connection

from tests.programs import database_url, eventually

_KEY = 4242
_TRIGGER = """
CREATE OR REPLACE FUNCTION public.test_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared({key});
    RETURN NULL;
END $$;
CREATE TRIGGER test_gate BEFORE {event} ON promotion.{table} FOR EACH STATEMENT EXECUTE FUNCTION public.test_gate();
"""
PURCHASES_WRITTEN = ("UPDATE", "promotion_purchases")
EVENTS_WRITTEN = ("INSERT", "outbox")


@contextlib.contextmanager
def session():
    """Another session in the test database, not in autocommit."""
    with psycopg.connect(database_url()) as other:
        yield other


class Gate:
    """Closed on entry: whoever comes to the statement waits until `open`."""

    def __init__(self, event, table):
        self._trigger = _TRIGGER.format(key=_KEY, event=event, table=table)

    def __enter__(self):
        with connection.cursor() as cursor:
            cursor.execute(self._trigger)
        self._keeper = psycopg.connect(database_url(), autocommit=True)
        self._keeper.execute("SELECT pg_advisory_lock(%s)", [_KEY])
        return self

    def __exit__(self, *_error):
        self._keeper.close()
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '10s'; DROP FUNCTION public.test_gate CASCADE; RESET lock_timeout")

    def wait_for(self, number=1):
        """Wait until so many sessions stand before the gate."""
        eventually(lambda: len(self.waiting()) >= number)

    def waiting(self):
        """The server processes that stand before the gate."""
        found = self._keeper.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted", [_KEY]
        )
        return [pid for (pid,) in found.fetchall()]

    def open(self):
        self._keeper.execute("SELECT pg_advisory_unlock(%s)", [_KEY])
