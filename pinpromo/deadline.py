"""Pieces of work whose database calls are interrupted when their time is over.

Note [One watcher]: one thread of the process watches all deadlines, and is woken only for one earlier than those it
knows. A thread for each deadline would cost more than the transaction that it bounds.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterator

from pinpromo import threads
from pinpromo.database import interrupter

NEVER = float("inf")
AGAIN = 1.0  # seconds until the next, harder interruption


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Interrupt this thread's database calls once the block has taken `seconds`; they raise OperationalError then.

    The server's own timeouts bound single statements, and nothing when the network swallows the answer.
    """
    watch = _Watch(seconds)
    _watcher.add(watch)
    try:
        yield
    finally:
        watch.end()
        _watcher.drop(watch)


class _Watch:
    """One block that must end in time."""

    def __init__(self, seconds: float) -> None:
        self.due = time.monotonic() + seconds
        self._interrupt = interrupter()
        self._attempt = 0
        self._over = False
        self._lock = threading.Lock()

    def interrupt(self) -> None:
        """Interrupt the block, unless it has just ended; a late interruption must not hit what comes next."""
        with self._lock:
            if not self._over:
                self._interrupt(self._attempt)
                self._attempt += 1
                self.due = time.monotonic() + AGAIN

    def end(self) -> None:
        """Make sure that no interruption comes any more."""
        with self._lock:
            self._over = True


class _Watcher:
    """The thread that looks after all watches."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watches: set[_Watch] = set()
        self._wakes_at = NEVER
        self._thread: threading.Thread | None = None

    def add(self, watch: _Watch) -> None:
        with self._changed:
            self._watches.add(watch)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threads.start("deadline", self._run)
            elif watch.due < self._wakes_at:
                self._changed.notify()

    def drop(self, watch: _Watch) -> None:
        with self._changed:
            self._watches.discard(watch)

    def _run(self) -> None:
        while True:
            for watch in self._overdue():
                watch.interrupt()

    def _overdue(self) -> list[_Watch]:
        """Wait until the earliest of the watches is due, or another is earlier; return those that are due."""
        with self._changed:
            self._wakes_at = min((watch.due for watch in self._watches), default=NEVER)
            self._changed.wait(min(self._wakes_at - time.monotonic(), threading.TIMEOUT_MAX))
            now = time.monotonic()
            return [watch for watch in self._watches if watch.due <= now]


_watcher = _Watcher()


def _forget() -> None:
    """A fork has no threads but the one that forked."""
    global _watcher
    _watcher = _Watcher()


os.register_at_fork(after_in_child=_forget)
