"""The relay: its rate against the database's own work, its claim beside published rows, and its delay."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

from bench import world
from bench.figures import Figure, milliseconds
from bench.measure import Sample, interleaved, ratio
from devstack.mock import MockCluster

BATCH = 500
FILL = """
INSERT INTO promotion.outbox (event_type, aggregate_id, topic, key, payload, headers, published_at)
SELECT 'PromotionPurchaseChanged', id, 'pin.promotion.purchase-changed.v1', id::text, repeat('x', 600),
       '{{"ce_specversion": "1.0", "ce_id": "4be5dd62-2c4f-4a8e-9d1c-1f2d7c1f9e11", "ce_source": "/pin/promotion"}}',
       {published}
FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, %s)) AS ids
"""


def fill(count: int, *, published: str = "NULL") -> None:
    """Add messages; `published` is SQL."""
    world.execute(FILL.format(published=published), [count])


def measure(url: str, *, messages: int, published: int, rounds: int) -> Iterator[Figure]:
    """Yield the figures of the relay."""
    world.use("pinpromo")
    world.execute("TRUNCATE promotion.outbox")
    yield _rate(messages, rounds)
    world.execute("TRUNCATE promotion.outbox")
    yield _delay(url)
    yield _beside_published(published)


def _rate(messages: int, rounds: int) -> Figure:
    """Drain the same number of messages with and without Kafka, in turn."""
    with MockCluster() as broker:
        broker.create_topic("pin.promotion.purchase-changed.v1", 4)
        relay = _relay(broker.bootstrap)
        fill(BATCH)
        relay()  # the first idempotent sending takes half a second
        values: dict[str, list[float]] = {"relay": [], "floor": []}
        for _ in range(rounds):
            for name, run in (("relay", relay), ("floor", _mark_all)):
                fill(messages)
                world.execute("VACUUM ANALYZE promotion.outbox")
                values[name].append(interleaved({name: run}, rounds=1, warm_up=0)[name].values[0])
    taken = {name: Sample(seconds) for name, seconds in values.items()}
    rates = {name: messages / sample.median for name, sample in taken.items()}
    return Figure(
        "relay, messages a second",
        ratio(taken["floor"], taken["relay"]),
        0.65,
        0.9,
        "claim, mark and commit without Kafka",
        f"{rates['relay']:,.0f} a second, without Kafka {rates['floor']:,.0f}",
        at_least=True,
    )


def _relay(bootstrap: str):  # noqa: ANN202
    from outbox.draining import Relay
    from outbox.publisher import Publisher
    from pinpromo.stop import Stop

    relay = Relay(Publisher(bootstrap, {}), stop=Stop(), batch_size=BATCH)
    return relay.drain


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


def _delay(url: str) -> Figure:
    """From commit to acknowledgement, of a relay that has nothing else to do: its own loop, in a process of its own."""
    import os
    import subprocess
    import sys

    with MockCluster() as broker:
        broker.create_topic("pin.promotion.purchase-changed.v1", 4)
        environment = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap, "DATABASE_URL": url}
        program = subprocess.Popen([sys.executable, "manage.py", "relay_outbox", "--loop"], env=environment)
        try:
            fill(1)
            time.sleep(4)
            world.execute("DELETE FROM promotion.outbox")
            for _ in range(200):
                fill(1)
                time.sleep(0.03)
            time.sleep(2)
            delays = _delays()
        finally:
            program.terminate()
            program.wait()
    sample = Sample(delays)
    detail = f"median {sample.median * 1e3:.1f} ms, of {len(delays)} messages"
    return Figure("commit to acknowledgement, p99", sample.percentile(99) * 1e3, 25, 10, "", detail, unit=" ms")


def _delays() -> list[float]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM published_at - created_at)::float8 FROM promotion.outbox"
            " WHERE published_at IS NOT NULL"
        )
        return [seconds for (seconds,) in cursor.fetchall()]


def _beside_published(published: int) -> Figure:
    values: dict[str, list[float]] = {"alone": [], "beside": []}
    for name in values:
        world.create(name)
    fill(published, published="now()")
    fill(2_000)
    world.execute("VACUUM ANALYZE promotion.outbox")
    world.use("alone")
    fill(2_000)
    world.execute("VACUUM ANALYZE promotion.outbox")
    for _ in range(40):
        for name, seconds in values.items():
            world.use(name)
            seconds.append(interleaved({"claim": _claim}, rounds=1, warm_up=1)["claim"].values[0])
    taken = {name: Sample(seconds) for name, seconds in values.items()}
    return Figure(
        f"claim beside {published:,} published messages",
        ratio(taken["beside"], taken["alone"]),
        1.5,
        1.1,
        "beside none",
        milliseconds(**taken),
    )


def _claim() -> None:
    from django.db import transaction

    from outbox.claiming import claim

    with transaction.atomic():
        assert len(claim(BATCH, at=datetime.now(UTC))) > 0
        transaction.set_rollback(True)
