"""How many messages a second: the relay against the database's own work, and two relays against one.

`python -m bench.relay DATABASE BROKER` is one such relay.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from bench import world
from bench.figures import Figure, rates
from bench.measure import in_turn, interleaved, ratio
from bench.messages import TOPIC, fill, settle
from bench.race import module, race, timed_by_owner
from devstack.mock import MockCluster

BATCH = 500
DATABASE = "relay"


def measure(_url: str, *, messages: int, rounds: int) -> Iterator[Figure]:
    """Yield the figures of the relay's rate, with librdkafka's mock as the broker."""
    world.create(DATABASE)
    with MockCluster() as broker:
        broker.create_topic(TOPIC, 4)
        yield _against_no_kafka(broker.bootstrap, messages, rounds)
        yield _two_against_one(broker.bootstrap, messages, rounds)


def draining(bootstrap: str) -> Callable[[], object]:
    """Return what a relay does until nothing is left, ready for its first message."""
    from outbox.draining import Relay
    from outbox.publisher import Publisher
    from pinpromo.stop import Stop

    publisher = Publisher(bootstrap, {})
    publisher.probe()
    time.sleep(1.5)  # until the idempotent producer has its id
    return Relay(publisher, stop=Stop(), batch_size=BATCH).drain


def refill(messages: int) -> None:
    """Start over with so many messages."""
    world.execute("TRUNCATE promotion.outbox")
    fill(messages)
    settle()


def _against_no_kafka(bootstrap: str, messages: int, rounds: int) -> Figure:
    """Drain the same number of messages with and without Kafka, in turn."""
    taken = interleaved(
        {"relay": draining(bootstrap), "without": _mark_all},
        rounds=rounds,
        warm_up=1,
        prepare=lambda _name: refill(messages),
    )
    return Figure(
        "relay, messages a second",
        ratio(taken["without"], taken["relay"]),
        0.65,
        0.9,
        "claim, mark and commit without Kafka",
        rates(messages, relay=taken["relay"], without_Kafka=taken["without"]),
        at_least=True,
    )


def _mark_all() -> None:
    """What the relay does, but for Kafka: the same claim, the same mark, the same transactions."""
    from outbox.claiming import claim
    from outbox.models import Outbox
    from outbox.outcomes import Acknowledgement
    from pinpromo.transactions import bounded

    while True:
        with bounded(seconds=2.0, idle_seconds=8.0):
            messages = claim(BATCH, at=datetime.now(UTC))
            Outbox.objects.mark_published({message.pk: Acknowledgement(0, 0) for message in messages})
        if not messages:
            return


def _two_against_one(bootstrap: str, messages: int, rounds: int) -> Figure:
    """Two relays are processes of their own, and so is the one."""

    def run(number: int) -> float:
        refill(messages)
        return race(*[module("bench.relay", DATABASE, bootstrap)] * number)

    taken = in_turn({"one": partial(run, 1), "two": partial(run, 2)}, rounds=rounds)
    return Figure(
        "two relays, messages a second",
        ratio(taken["one"], taken["two"]),
        1,
        None,
        "one relay",
        rates(messages, **taken),
        at_least=True,
    )


def work(database: str, bootstrap: str) -> None:
    """Publish until nothing is left, as the relay does."""
    import django

    django.setup()
    world.use(database)
    drain = draining(bootstrap)
    with timed_by_owner():
        drain()


if __name__ == "__main__":
    work(*sys.argv[1:])
