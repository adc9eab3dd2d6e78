"""Wakes the relay when messages are committed: LISTEN on a connection of its own.

Polling goes on beside it, so nothing is lost when there is no such connection, or a pooler makes it deaf.
"""

import time
from collections.abc import Sequence

import psycopg
import structlog
from django.db import connection

from outbox.models import CHANNEL
from pinpromo import failures
from pinpromo.outages import OutageLog

log = structlog.get_logger("outbox.wakeup")

RETRY_SECONDS = 1.0  # between two attempts to connect


class Listener:
    """The listening connection; a lost one is replaced."""

    def __init__(self) -> None:
        self._link: psycopg.Connection | None = None
        self._retry_at = 0.0
        self._outage = OutageLog("listen")

    def descriptors(self) -> Sequence[int]:
        """What to wait on for input, beside the clock."""
        if self._link is None and time.monotonic() >= self._retry_at:
            self._open()
        return [] if self._link is None else [self._link.fileno()]

    def clear(self) -> None:
        """Take note of what has come in; a lost connection shows here."""
        if self._link is None:
            return
        try:
            self._link.pgconn.consume_input()
            while self._link.pgconn.notifies():
                pass
        except psycopg.Error:
            log.warning("listen_lost")
            self.close()

    def close(self) -> None:
        """End listening."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _open(self) -> None:
        self._retry_at = time.monotonic() + RETRY_SECONDS
        try:
            parameters = connection.get_connection_params() | {"application_name": "pinpromo-listen"}
            self._link = psycopg.connect(**parameters, autocommit=True)
            self._link.execute(f"LISTEN {CHANNEL}")
            self._outage.recovered()
        except psycopg.Error as error:
            self._outage.failed(failures.describe(error))
            self.close()
