"""Whether a loop is alive: the state behind `/healthz` and `/readyz`, and the watchdog that ends a hung process."""

import faulthandler
import os
import time

import structlog

from pinpromo import threads

log = structlog.get_logger("pinpromo.pulse")

SLACK = 30.0  # seconds that a loop may be late before it counts as hung
HUNG_EXIT_CODE = 1


class Pulse:
    """The moment by which the loop must move next, and the outcome of its last piece of work."""

    def __init__(self) -> None:
        self._due = time.monotonic() + SLACK
        self.ready = False

    def expect_within(self, seconds: float) -> None:
        """Say that the loop moves again within `seconds`."""
        self._due = time.monotonic() + seconds + SLACK

    @property
    def alive(self) -> bool:
        """Whether the loop has moved when it said it would."""
        return time.monotonic() < self._due

    def watch(self) -> None:
        """Start the watchdog: a thread that ends the process when the loop hangs, so that it is started anew."""
        threads.start("watchdog", self._end_if_hung)

    def _end_if_hung(self) -> None:
        while self.alive:
            asleep = time.monotonic()
            time.sleep(1)
            overslept = time.monotonic() - asleep - 1
            if overslept > 1:  # the whole process did not run: not the loop's fault
                self._due += overslept
        log.critical("loop_hung", pid=os.getpid())
        faulthandler.dump_traceback()
        os._exit(HUNG_EXIT_CODE)
