"""The tick shared by both loops: a fixed grid on the monotonic clock, no overlap, no queue of missed ticks."""

import random
import time
from collections.abc import Callable, Sequence

import structlog

from pinpromo.database import Outage
from pinpromo.pulse import Pulse
from pinpromo.stop import Stop

log = structlog.get_logger("pinpromo.loop")

JITTER = 1.0  # seconds, at most, before the first tick: instances that start together spread out


def run(
    work: Callable[[], bool | None],
    *,
    interval: float,
    budget: float,
    stop: Stop,
    pulse: Pulse,
    wakers: Callable[[], Sequence[int]] = tuple,
    on_missed: Callable[[str, int], None] = lambda _reason, _count: None,
    on_outage: Callable[[], None] = lambda: None,
) -> None:
    """Call `work` every `interval` seconds, and when one of `wakers` has input, until a stop is asked for.

    `work` must end within about `budget` seconds, and may return False to say that it could not do what it is there
    for: the process is not ready then. When it raises a database error of the infrastructure, the next
    tick tries again; any other error ends the loop. Ticks that could not take place are skipped and counted by
    reason: `overrun` (the work before outlasted the interval) or `suspended` (the process did not run).
    """
    outage = Outage()
    grid = _Grid(interval)
    pulse.expect_within(interval)
    while not stop.wait(grid.seconds_left(), *wakers()):
        if grid.seconds_left() <= 0 and (missed := grid.advance() - 1):
            on_missed("suspended", missed)
        pulse.expect_within(budget)
        pulse.ready = outage.survive(work)
        if not pulse.ready:
            on_outage()
        if grid.seconds_left() <= 0:
            on_missed("overrun", grid.advance())
        pulse.expect_within(grid.seconds_left())


class _Grid:
    """Equidistant instants of the monotonic clock, which no change of the wall clock moves."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._next = time.monotonic() + random.uniform(0, min(JITTER, interval))  # noqa: S311 - not a secret

    def seconds_left(self) -> float:
        return self._next - time.monotonic()

    def advance(self) -> int:
        """Move past now; return over how many instants."""
        passed = int(-self.seconds_left() // self._interval) + 1
        self._next += passed * self._interval
        return passed
