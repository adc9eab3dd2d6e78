"""The connection of a long-lived process: interruption from outside, and outages that are survived."""

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from django.db import Error, close_old_connections, connection, connections

from pinpromo import failures
from pinpromo.outages import OutageLog
from pinpromo.threads import leave_signals


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


@contextlib.contextmanager
def _psycopg_connection() -> Iterator[psycopg.Connection[Any]]:
    """Yield the connection below Django's. Errors are Django's all the same."""
    connection.close_if_health_check_failed()  # as Django's own cursor does: it may have died since the last tick
    connection.ensure_connection()
    with connection.wrap_database_errors:
        yield connection.connection


@contextlib.contextmanager
def plain_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """Yield a cursor of psycopg's own on Django's connection: for COPY and for results in binary form.

    Django's cursor takes neither server-side parameters nor binary results. Raises Django's database errors.
    """
    with _psycopg_connection() as link, psycopg.Cursor(link) as cursor:
        yield cursor


@contextlib.contextmanager
def asking(statement: str, parameters: Mapping[str, Any]) -> Iterator[psycopg.Cursor[Any]]:
    """Have the server run a statement while the block runs; the cursor has its result, in binary form, after it.

    Raises Django's database errors at the end of the block. By a thread and not by psycopg's pipeline: in a pipeline
    the server's own idle timeout does not run, and a process that is stopped there would keep its locks for ever.
    """
    with _psycopg_connection() as link, ThreadPoolExecutor(1, initializer=leave_signals) as beside:
        cursor = psycopg.Cursor(link)
        answer = beside.submit(cursor.execute, statement, parameters, binary=True)
        yield cursor
        answer.result()


class Outage:
    """Runs pieces of work through outages of the database; says so when one begins, once a minute, and when it ends."""

    def __init__(self) -> None:
        self._log = OutageLog("database")

    def survive(self, work: Callable[[], bool | None]) -> bool:
        """Call `work`, on a connection known to be usable. Return False if it says so, or the infrastructure failed.

        Any other error is raised.
        """
        try:
            close_old_connections()
            good = work() is not False
            close_old_connections()
        except Error as error:
            if not failures.is_infrastructure(error):
                raise
            connection.close()  # the next attempt may reach another server
            self._log.failed(failures.describe(error))
            return False
        self._log.recovered()
        return good
