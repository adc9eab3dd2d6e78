"""Stopping on SIGTERM and SIGINT.

Note [Signals]: Python runs a signal's handler only between two bytecodes of the main thread, which may be deep in
a database call. So the handlers do nothing; the interpreter writes each signal's number to a socket
(signal.set_wakeup_fd), and a thread reads it there. Nothing is raised into the main thread's code.
manage.py blocks the signals before it imports anything, so that an early one waits for this module, and a late one
does not spoil the exit code.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

import structlog

log = structlog.get_logger("pinpromo.stop")

SIGNALS = (signal.SIGTERM, signal.SIGINT)
GRACE = 10.0  # seconds that the work in hand has to end by itself after the first signal


class Stop:
    """A stop asked for by signal: the first lets the work in hand end, a second (or the grace's end) hurries it.

    A context manager for the main thread. `hurry` is called in another thread with 0, 1, 2 ..., every second until
    the main thread is done, and must make its pending call return.
    """

    def __init__(self, hurry: Callable[[int], None] = lambda _attempt: None, *, grace: float = GRACE) -> None:
        self.requested = False
        self.hurried = False
        self._grace = grace
        self._hurry = hurry
        self._signals, self._wakeup = socket.socketpair()
        self._woken, self._waker = socket.socketpair()
        self._wakeup.setblocking(False)
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            self._previous[number] = signal.signal(number, _ignore)
        # A closed terminal is no reason to stop.
        self._previous[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._previous_fd = signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._watch, name="stop", daemon=True)
        self._thread.start()
        self._mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, self._previous)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        signal.set_wakeup_fd(self._previous_fd)
        # Whoever blocked them around this wants none to matter: a late one must not change the exit code of a process
        # that is about to end, whichever of its threads it reaches.
        for number, handler in self._previous.items():
            if number not in self._mask:
                signal.signal(number, handler)
        self._wakeup.close()
        self._thread.join()
        for end in (self._signals, self._woken, self._waker):
            end.close()

    def wait(self, seconds: float, *readers: int) -> bool:
        """Wait until a stop is asked for, one of `readers` has input, or `seconds` are over.

        Returns whether a stop was asked for. Returns at once if it was before.
        """
        if not self.requested:
            select.select([self._woken.fileno(), *readers], [], [], max(0.0, seconds))
        return self.requested

    def _watch(self) -> None:
        with contextlib.suppress(_Over):
            self._await_signal()
            self.requested = True
            self._waker.send(b"\0")
            log.info("stop_requested", grace_seconds=self._grace)
            with contextlib.suppress(TimeoutError):
                self._await_signal(self._grace)
            self.hurried = True
            log.warning("stop_hurried")
            for attempt in itertools.count():
                self._hurry(attempt)
                with contextlib.suppress(TimeoutError):
                    self._await_signal(1.0)

    def _await_signal(self, seconds: float | None = None) -> None:
        """Return at a stop signal. Raises TimeoutError after `seconds`, or _Over when the main thread is done."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            self._signals.settimeout(None if deadline is None else max(0.001, deadline - time.monotonic()))
            numbers = self._signals.recv(64)
            if not numbers:
                raise _Over
            if any(number in SIGNALS for number in numbers):
                return


class _Over(Exception):  # noqa: N818
    """The main thread has left the `with` block."""


def _ignore(_signal: int, _frame: FrameType | None) -> None:
    """Let the wakeup file descriptor do the work."""
