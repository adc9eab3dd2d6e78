"""What worker and relay hold in memory once they have handled very many: the real programs, with their loops."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import psutil

from bench import world
from bench.figures import Figure
from bench.messages import TOPIC
from devstack.mock import MockCluster
from devstack.program import MANAGE

DATABASE = "memory"
EARLY = 10_000
# Ticks that follow each other without a break.
WORKER = ("expire_promotions", "--loop", "--drain", "--interval", "1")


def measure(url: str, *, handled: int) -> Iterator[Figure]:
    """Yield how much more they hold after so many than after 10,000. The relay publishes what the worker recorded."""
    world.create(DATABASE)
    world.fill(due=handled)
    environ = {
        "DATABASE_URL": world.url_of(url, DATABASE),
        "EXPIRE_PROMOTIONS_MIN_INTERVAL": "1",
        "EXPIRE_PROMOTIONS_TICK_BUDGET": "30",
    }
    with MockCluster() as broker:
        broker.create_topic(TOPIC, 4)
        environ["KAFKA_BOOTSTRAP_SERVERS"] = broker.bootstrap
        yield _growth("worker", WORKER, environ, "cycle_completed", "expired", handled)
        yield _growth("relay", ("relay_outbox", "--loop"), environ, "messages_published", "published", handled)
    world.drop(DATABASE)


def _growth(
    name: str, command: tuple[str, ...], environ: dict[str, str], event: str, count: str, handled: int
) -> Figure:
    readings: dict[str, int] = {}
    program = subprocess.Popen(
        [sys.executable, MANAGE, *command],
        env={**os.environ, **environ}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with program:
        try:
            memory = psutil.Process(program.pid).memory_info
            for done in _progress(program, event, count):
                if done >= EARLY:
                    readings.setdefault("early", memory().rss)
                if done >= handled:
                    readings["late"] = memory().rss
                    break
        finally:
            program.kill()
    early, late = readings["early"], readings["late"]
    detail = f"{early / 2**20:.1f} MiB, then {late / 2**20:.1f} MiB"
    return Figure(f"the {name}'s memory after {handled:,}", late / early, 1.1, 1.0, f"after {EARLY:,}", detail)


def _progress(program: subprocess.Popen[str], event: str, count: str) -> Iterator[int]:
    """Tell how much it has handled so far, each time that its log says so."""
    done = 0
    assert program.stderr is not None
    for line in program.stderr:
        if event in line:
            done += json.loads(line)[count]
            yield done
