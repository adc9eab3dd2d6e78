"""Transactions whose every wait is bounded."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def bounded(*, seconds: float, lock_seconds: float = 5.0) -> Iterator[None]:
    """Open a transaction in which no statement and no idle moment outlasts `seconds`, no lock `lock_seconds`.

    Deferred constraints are checked at once, so that an error names the statement that caused it.
    Must not stand inside another transaction.
    """
    limit = max(1, round(seconds * 1000))
    lock_limit = max(1, round(min(seconds, lock_seconds) * 1000))
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            # SET LOCAL: a plain SET would leak to the next client of a pooled connection.
            cursor.execute(
                f"SET LOCAL statement_timeout = {limit};"
                f"SET LOCAL idle_in_transaction_session_timeout = {limit};"
                f"SET LOCAL lock_timeout = {lock_limit};"
                "SET CONSTRAINTS ALL IMMEDIATE"
            )
        yield
