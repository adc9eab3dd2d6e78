"""Transactions whose every wait is bounded."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

from pinpromo.deadline import deadline

SLACK = 1.0  # seconds in which the server's own timeouts are awaited before the client interrupts


@contextmanager
def bounded(*, seconds: float, lock_seconds: float = 5.0, idle_seconds: float | None = None) -> Iterator[None]:
    """Open a transaction in which no statement outlasts `seconds`, and no wait for a lock `lock_seconds`.

    No idle moment outlasts `idle_seconds`, by default `seconds`. Connecting and everything in the block together are
    interrupted soon after the sum of both (`seconds`, if only it is given), even when the network is silent.
    Deferred constraints are checked at once, so that an error names the statement that caused it.
    Must not stand inside another transaction.
    """
    limit = max(1, round(seconds * 1000))
    idle_limit = limit if idle_seconds is None else max(1, round(idle_seconds * 1000))
    lock_limit = max(1, round(min(seconds, lock_seconds) * 1000))
    with deadline(seconds + (idle_seconds or 0.0) + SLACK), transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            # SET LOCAL: a plain SET would leak to the next client of a pooled connection.
            cursor.execute(
                f"SET LOCAL statement_timeout = {limit};"
                f"SET LOCAL idle_in_transaction_session_timeout = {idle_limit};"
                f"SET LOCAL lock_timeout = {lock_limit};"
                "SET CONSTRAINTS ALL IMMEDIATE"
            )
        yield
