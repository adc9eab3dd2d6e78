"""Counts how often the database is asked, whatever the way: a performance regression shows here, not on a clock."""

import contextlib

import psycopg


@contextlib.contextmanager
def round_trips():
    """Yield a list that gets one entry for each wait for the server."""
    waits = []
    wait = psycopg.Connection.wait

    def counted(self, *arguments, **options):
        waits.append(1)
        return wait(self, *arguments, **options)

    psycopg.Connection.wait = counted
    try:
        yield waits
    finally:
        psycopg.Connection.wait = wait
