"""The relay against a real Apache Kafka, compared with a bare producer that has the same messages in memory."""

from __future__ import annotations

from collections.abc import Iterator

from bench import floors, world
from bench.figures import Figure, rates
from bench.measure import interleaved, ratio
from bench.messages import TOPIC
from bench.relay import draining, refill
from devstack import kafka
from devstack.broker import create_topic

DATABASE = "kafka"
NAME = "relay against a real Apache Kafka, messages a second"
AGAINST = "a bare idempotent producer"


def measure(_url: str, *, messages: int, rounds: int) -> Iterator[Figure]:
    """Yield the relay's share of what the producer reaches, or that there is no Java here."""
    if lacks := kafka.missing():
        yield Figure(NAME, None, None, None, AGAINST, lacks)
        return
    world.create(DATABASE)
    with kafka.EmbeddedKafka() as broker:
        yield _against_producer(broker.bootstrap, messages, rounds)


def _against_producer(bootstrap: str, messages: int, rounds: int) -> Figure:
    from outbox.models import Outbox

    create_topic(bootstrap, TOPIC, 4)
    refill(messages)
    records = [
        floors.Record(TOPIC, key.encode(), payload.encode(), [(name, text.encode()) for name, text in headers.items()])
        for key, payload, headers in Outbox.objects.values_list("key", "payload", "headers")
    ]
    publish = floors.producing(bootstrap, records)
    taken = interleaved(
        {"relay": draining(bootstrap), "producer": publish},
        rounds=rounds,
        warm_up=1,
        prepare=lambda name: refill(messages) if name == "relay" else None,
    )
    detail = f"{rates(messages, **taken)}; Apache Kafka {kafka.EmbeddedKafka.version}, one node, 4 partitions"
    return Figure(NAME, ratio(taken["producer"], taken["relay"]), None, None, AGAINST, detail, at_least=True)
