"""Several workers drain one backlog, each a process of its own. `python -m bench.workers DATABASE` is one of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

from bench import world
from bench.figures import Figure, spread
from bench.measure import in_turn, ratio
from bench.race import module, race, timed_by_owner

DATABASE = "workers"
EMPTY = "TRUNCATE promotion.promotion_purchases, promotion.promotion_purchase_targets, promotion.outbox"


def measure(_url: str, *, backlog: int, rounds: int) -> Iterator[Figure]:
    """Yield how many times faster two and four workers are than one."""
    world.create(DATABASE)
    taken = in_turn({str(number): partial(_drain, number, backlog) for number in (1, 2, 4)}, rounds=rounds)
    for number, must, aim in (("2", 1.25, 1.7), ("4", 1.3, 1.9)):
        yield Figure(
            f"{number} workers draining {backlog:,}",
            ratio(taken["1"], taken[number]),
            must,
            aim,
            "one worker",
            f"{number} workers {spread(taken[number], digits=2)} s; one {spread(taken['1'], digits=2)} s",
            at_least=True,
        )


def _drain(number: int, backlog: int) -> float:
    world.execute(EMPTY)
    world.fill(due=backlog)
    return race(*[module("bench.workers", DATABASE)] * number)


def work(database: str) -> None:
    """Expire until nothing is due, as the worker does."""
    import django

    django.setup()
    world.use(database)
    from bench.cycle import BATCH, expire
    from promotion.outlook import LowMark

    mark = LowMark()
    with timed_by_owner():
        while expire(mark=mark) == BATCH:
            pass


if __name__ == "__main__":
    work(sys.argv[1])
