"""A second connection to the test database, for what somebody else does at the same time."""

from contextlib import contextmanager, suppress

import psycopg

from tests.programs import database_url


@contextmanager
def other_connection(*, autocommit=False):
    """Open it; what it has not committed is rolled back at the end."""
    link = psycopg.connect(database_url(), autocommit=autocommit)
    try:
        yield link
    finally:
        with suppress(psycopg.Error):
            link.rollback()  # the server answers only when its locks are gone; it learns of a closed connection later
        link.close()
