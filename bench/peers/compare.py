"""How many times faster than the peers: a worker against a task for each purchase, a relay against theirs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bench import relay, workers, world
from bench.figures import Figure, rates
from bench.measure import in_turn, ratio
from bench.messages import TOPIC
from bench.peers import environment
from bench.race import module, race
from devstack.mock import MockCluster

DATABASE = "peers"
EXPIRING = {
    "Procrastinate": ("procrastinate", "a task for each purchase"),
    "django-tasks-db": ("django-tasks-db", "a task for each purchase"),
    "a Celery-style loop": ("", "`save()` and commit for each purchase"),
}
RELAYING = {"django-jaiminho": ("django-jaiminho", "its relay, keep-order")}


@dataclass(frozen=True)
class Contest:
    """One of our programs and those that do the same work, each alone, in turn."""

    ours: str
    command: Sequence[str]
    peers: Mapping[str, tuple[str, str]]
    count: int
    refill: Callable[[], object]
    left: str  # SQL: what must be 0 in the end

    def measure(self, python: str, environ: Mapping[str, str], rounds: int) -> Iterator[Figure]:
        """Yield how many times faster ours is than each."""
        sides = {"ours": partial(self._run, self.command, {})}
        for name in self.peers:
            sides[name] = partial(self._run, module("bench.peers.peer", name, python=python), environ)
        taken = in_turn(sides, rounds=rounds)
        for name in self.peers:
            yield self._figure(
                name, ratio(taken[name], taken["ours"]), rates(self.count, ours=taken["ours"], theirs=taken[name])
            )

    def not_measured(self, why: str) -> Iterator[Figure]:
        """Yield the same without values."""
        return (self._figure(name, None, why) for name in self.peers)

    def _run(self, command: Sequence[str], environ: Mapping[str, str]) -> float:
        self.refill()
        seconds = race(command, environ=environ)
        assert world.ask(self.left) == 0, f"{command} has left something undone"
        return seconds

    def _figure(self, name: str, value: float | None, detail: str) -> Figure:
        package, way = self.peers[name]
        against = f"{package} {environment.version(package)}: {way}" if package else way
        return Figure(f"{self.ours}, times faster than {name}", value, 1, 5, against, detail, at_least=True)


def measure(url: str, *, purchases: int, messages: int, rounds: int) -> Iterator[Figure]:
    """Yield the figures of both contests."""
    world.create(DATABASE)
    with MockCluster() as broker:
        broker.create_topic(TOPIC, 4)
        contests = _contests(broker.bootstrap, purchases, messages)
        try:
            python = environment.python()
        except environment.NotInstalled as error:
            for contest in contests:
                yield from contest.not_measured(str(error))
            return
        environ = {
            "DJANGO_SETTINGS_MODULE": "bench.peers.settings",
            "DATABASE_URL": world.url_of(url, DATABASE),
            "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap,
        }
        migrate = [python, "-m", "django", "migrate", "--verbosity", "0", "--skip-checks"]
        subprocess.run(migrate, env={**os.environ, **environ}, check=True)
        for contest in contests:
            yield from contest.measure(python, environ, rounds)


def _contests(bootstrap: str, purchases: int, messages: int) -> list[Contest]:
    def refill() -> None:
        world.execute(workers.EMPTY)
        world.fill(due=purchases)

    return [
        Contest(
            "worker", module("bench.workers", DATABASE), EXPIRING, purchases, refill,
            "SELECT (SELECT count(*) FROM promotion.promotion_purchases WHERE status <> 'Expired')"
            f" + {purchases} - (SELECT count(*) FROM promotion.outbox)",
        ),
        Contest(
            "relay", module("bench.relay", DATABASE, bootstrap), RELAYING, messages,
            lambda: relay.refill(messages), "SELECT 0",
        ),
    ]  # fmt: skip
