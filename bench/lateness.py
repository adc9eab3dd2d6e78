"""From the due moment to the consumed event: worker, relay and consumer at work as in production."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from confluent_kafka import Consumer, TopicPartition

from bench import world
from bench.figures import Figure, spread
from bench.measure import Sample
from bench.messages import TOPIC
from devstack.mock import MockCluster
from devstack.program import manage

DATABASE = "lateness"
PARTITIONS = 4
START = 10.0  # seconds until the first purchase ends: everything is running by then
FILL = """
WITH added AS (
    INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
    SELECT gen_random_uuid(), 'Boost', 'Active', %(first)s - interval '7 days',
           %(first)s + number * (%(span)s * interval '1 second' / (%(count)s - 1))
    FROM generate_series(0, %(count)s - 1) AS number RETURNING id)
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, 'CatalogItem', gen_random_uuid() FROM added
"""


def measure(url: str, *, purchases: int, span: float, interval: float) -> Iterator[Figure]:
    """Yield how late the latest of `purchases` is that end evenly over `span` seconds."""
    world.create(DATABASE)
    first = datetime.now(UTC) + timedelta(seconds=START)
    world.execute(FILL, {"first": first, "span": span, "count": purchases})
    with MockCluster() as broker:
        broker.create_topic(TOPIC, PARTITIONS)
        environ = {
            "DATABASE_URL": world.url_of(url, DATABASE),
            "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap,
            "EXPIRE_PROMOTIONS_MIN_INTERVAL": f"{min(interval, 60):g}",
        }
        with (
            manage("relay", "relay_outbox", "--loop", environ=environ),
            manage(
                "worker", "expire_promotions", "--loop", "--interval", f"{interval:g}", "--json", environ=environ
            ) as worker,
        ):
            arrived = _consume(broker.bootstrap, purchases, seconds=START + span + 3 * interval + 30)
            cycles = {cycle["as_of"]: cycle["duration_ms"] / 1e3 for cycle in worker.results()}
    yield from _figures(arrived, interval, cycles)


def _consume(bootstrap: str, count: int, *, seconds: float) -> dict[str, float]:
    """Read events until there are as many as purchases; return by purchase id when each came, by the wall clock."""
    # The mock broker answers a waiting consumer when its time is over, and not, as Kafka does, when a message comes.
    settings = {"group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 1}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    arrived: dict[str, float] = {}
    until = time.monotonic() + seconds
    while len(arrived) < count and time.monotonic() < until:
        message = consumer.poll(0.5)
        if message is not None and (key := message.key()):
            arrived.setdefault(key.decode(), time.time())
    consumer.close()
    assert len(arrived) == count, f"{len(arrived)} of {count} purchases were heard of"
    return arrived


def _figures(arrived: dict[str, float], interval: float, cycles: dict[str, float]) -> Iterator[Figure]:
    """Judge by R-26: expired after an interval and a cycle at most, and heard of within one more interval."""
    from promotion.events import rfc3339
    from promotion.models import PromotionPurchase

    purchases = PromotionPurchase.objects.values_list("id", "ends_at", "updated_at")
    waited = Sample([(as_of - ended).total_seconds() + cycles[rfc3339(as_of)] for _, ended, as_of in purchases])
    heard = Sample([arrived[str(purchase)] - ended.timestamp() for purchase, ended, _ in purchases])
    assert min(heard.values) > 0, "something ended early"
    longest = max(cycles.values())
    limit = round(interval + longest, 3)
    later = max(heard.values) - limit
    yield Figure(
        f"due moment to the end of the cycle, the latest of {len(arrived):,}",
        max(waited.values),
        limit,
        None,
        "interval and longest cycle",
        f"{spread(waited, digits=1)} s; the longest cycle {longest * 1e3:.0f} ms",
        unit=" s",
    )
    yield Figure(
        f"due moment to consumed event, the latest of {len(arrived):,}",
        max(heard.values),
        limit + interval,
        None,
        "the same, and one interval",
        f"{spread(heard, digits=1)} s; the latest is {later * 1e3:+.0f} ms from interval and longest cycle",
        unit=" s",
    )
