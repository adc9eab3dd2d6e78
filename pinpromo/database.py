"""The connection of a long-lived process: interruption from outside, and outages that are survived."""

import contextlib
import socket
import time
from collections.abc import Callable

import psycopg
import structlog
from django.db import Error, close_old_connections, connection, connections

from pinpromo import failures

log = structlog.get_logger("pinpromo.database")

REPORT_EVERY = 60.0  # seconds between two log lines of one outage


def interrupter() -> Callable[[int], None]:
    """Return a function for other threads that ends this thread's pending database call.

    Called with 0 it asks the server to cancel the query; with more, it cuts the connection, which works even when
    the network swallows every packet. The server rolls back in both cases.
    """
    mine = connections["default"]

    def interrupt(attempt: int) -> None:
        raw = mine.connection
        if raw is None:
            return
        with contextlib.suppress(psycopg.Error, OSError):
            if attempt == 0:
                raw.cancel_safe(timeout=1.0)
            else:
                with socket.socket(fileno=socket.dup(raw.fileno())) as link:
                    link.shutdown(socket.SHUT_RDWR)

    return interrupt


class Outage:
    """Runs pieces of work through outages of the database; says so when one begins, once a minute, and when it ends."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._reported = 0.0

    def survive(self, work: Callable[[], None]) -> bool:
        """Call `work`, on a connection known to be usable. Return False if the infrastructure failed.

        Any other error is raised.
        """
        try:
            close_old_connections()
            work()
            close_old_connections()
        except Error as error:
            if not failures.is_infrastructure(error):
                raise
            connection.close()  # the next attempt may reach another server
            self._failed(error)
            return False
        self._recovered()
        return True

    def _failed(self, error: Error) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = now
        elif now - self._reported < REPORT_EVERY:
            return
        self._reported = now
        log.error("database_failed", reason=failures.describe(error), outage_seconds=round(now - self._began, 1))

    def _recovered(self) -> None:
        if self._began is not None:
            log.info("database_recovered", outage_seconds=round(time.monotonic() - self._began, 1))
            self._began = None
