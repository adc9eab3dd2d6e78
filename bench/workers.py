"""Several workers drain one backlog, each a process of its own. `python -m bench.workers` is one of them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from bench import world
from bench.figures import Figure

EMPTY = "TRUNCATE promotion.promotion_purchases, promotion.promotion_purchase_targets, promotion.outbox"


def measure(_url: str, *, backlog: int, rounds: int) -> Iterator[Figure]:
    """Yield how many times faster two and four workers are than one."""
    world.create("workers")
    seconds: dict[int, list[float]] = {1: [], 2: [], 4: []}
    for _ in range(rounds):
        for number, taken in seconds.items():
            world.execute(
                "TRUNCATE promotion.promotion_purchases, promotion.promotion_purchase_targets, promotion.outbox"
            )
            world.fill(due=backlog)
            taken.append(_drain(number))
    best = {number: min(taken) for number, taken in seconds.items()}
    for number, must, aim in ((2, 1.25, 1.7), (4, 1.3, 1.9)):
        detail = f"best of {rounds}: {best[number]:.1f} s, one worker {best[1]:.1f} s"
        yield Figure(
            f"{number} workers draining {backlog:,}", best[1] / best[number], must, aim, "one worker", detail, True
        )


def _drain(number: int) -> float:
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.workers", "workers"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        for _ in range(number)
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()  # ready
    started = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate()
    return time.perf_counter() - started


def _work(database: str) -> None:
    import django

    django.setup()
    world.use(database)
    from bench.cycle import BATCH, expire

    print("ready", flush=True)
    sys.stdin.readline()
    while expire() == BATCH:
        pass


if __name__ == "__main__":
    _work(sys.argv[1])
