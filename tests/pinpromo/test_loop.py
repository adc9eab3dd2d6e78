"""The tick: a fixed grid, no overlap, no queue of missed ticks. On a clock that the test turns."""

import random
from types import SimpleNamespace

import pytest
from django.db import OperationalError

from pinpromo import loop
from pinpromo.pulse import Pulse


class World:
    """A monotonic clock, and a stop that is asked for at a given moment; waiting turns the clock."""

    def __init__(self, until):
        self.now, self._until = 1000.0, 1000.0 + until
        self.ticks, self.missed, self.outages = [], [], 0

    def monotonic(self):
        return self.now

    def wait(self, seconds, *_readers):
        self.now = min(self.now + max(0.0, seconds), self._until)
        return self.now >= self._until

    def count_outage(self):
        self.outages += 1


@pytest.fixture
def run(monkeypatch):
    """Run the loop every 60 s for `until` seconds; `durations` are how long its first ticks take."""

    def run(until, durations=(), work=None, suspended=None):
        world = World(until)
        monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=world.monotonic))
        monkeypatch.setattr("pinpromo.database.close_old_connections", lambda: None)
        upcoming = list(durations)

        def tick():
            world.ticks.append(world.now - 1000)
            world.now += upcoming.pop(0) if upcoming else 0.5
            if work:
                work()

        if suspended:
            wait = world.wait

            def wait_suspended(seconds, *readers):
                stopped = wait(seconds, *readers)
                if len(world.ticks) == 1:
                    world.now += suspended
                return stopped

            world.wait = wait_suspended
        loop.run(
            tick, interval=60, budget=30, stop=world, pulse=Pulse(),
            on_missed=lambda reason, count: world.missed.append((reason, count)), on_outage=world.count_outage,
        )  # fmt: skip
        return world

    return run


def after_the_first(world):
    return [round(tick - world.ticks[0], 6) for tick in world.ticks]


def test_the_first_tick_comes_at_once_the_next_every_interval(run):
    world = run(until=200)
    assert 0 <= world.ticks[0] <= 1
    assert after_the_first(world) == [0, 60, 120, 180]
    assert world.missed == []


def test_instances_that_start_together_spread_out(run):
    random.seed(4)
    assert len({run(until=2).ticks[0] for _ in range(3)}) == 3


def test_a_cycle_that_outlasts_the_interval_makes_the_missed_ticks_skip(run):
    world = run(until=400, durations=[0.5, 130, 0.5])
    assert after_the_first(world) == [0, 60, 240, 300, 360]
    assert world.missed == [("overrun", 2)]


def test_a_cycle_just_below_the_interval_misses_nothing(run):
    world = run(until=200, durations=[59.9, 59.9])
    assert after_the_first(world) == [0, 60, 120, 180]
    assert world.missed == []


def test_a_suspended_process_makes_one_tick_at_once_and_no_burst(run):
    world = run(until=400, suspended=150)
    first, second, third = world.ticks[:3]
    assert second - first == pytest.approx(210)  # the grid's instants at 60, 120 and 180 are gone
    assert third - first == pytest.approx(240)
    assert world.missed == [("suspended", 2)]


def test_an_outage_waits_for_the_next_tick(run):
    failing = [True, True, False]

    def work():
        if failing and failing.pop(0):
            raise OperationalError("the database is gone")

    world = run(until=200, work=work)
    assert after_the_first(world) == [0, 60, 120, 180]
    assert world.outages == 2


def test_a_bug_ends_the_loop(run):
    def work():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(until=200, work=work)
