"""The connection of a long-lived process: interruption from outside, and outages that are survived."""

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator

import psycopg
from django.db import Error, close_old_connections, connection, connections

from pinpromo import failures
from pinpromo.outages import OutageLog


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
def deadline(seconds: float) -> Iterator[None]:
    """Interrupt this thread's database calls once the block has taken `seconds`; they raise OperationalError then.

    The server's own timeouts bound single statements, and nothing when the network swallows the answer.
    """
    interrupt = interrupter()
    over = threading.Event()

    def watch() -> None:
        wait = seconds
        for attempt in itertools.count():
            if over.wait(wait):
                return
            interrupt(attempt)
            wait = 1.0

    watcher = threading.Thread(target=watch, name="deadline", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()  # a late interruption must not hit what comes next


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
