"""Messages in the outbox as any program may write them, and what arrives of them in the topic."""

import itertools
import os
import time
import uuid

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from outbox.models import Outbox


def record(key="k", value="{}", *, topic="test", count=1, **columns):
    """Write `count` messages of one key, committed like the plain SQL of another program; return their ids."""
    rows = [
        Outbox(
            event_type="Tested",
            aggregate_id=uuid.uuid4(),
            topic=topic,
            key=key,
            payload=value if count == 1 else f"{value}{number}",
            **columns,
        )
        for number in range(count)
    ]
    return [row.pk for row in Outbox.objects.bulk_create(rows)]


_ids = itertools.count(1)


def unsaved(key="k", value="{}", topic="test", headers=None):
    """Return a message as the publisher gets it, that is in no database."""
    return Outbox(pk=next(_ids), topic=topic, key=key, payload=value, headers=headers or {})


def state(message_id):
    """Return one word: pending, waiting, published, parked or skipped."""
    message = Outbox.objects.get(pk=message_id)
    if message.published_at:
        return "published"
    if message.parked_at:
        return "skipped" if message.skipped_at else "parked"
    return "waiting" if message.next_attempt_at else "pending"


def states(*message_ids):
    return [state(message_id) for message_id in message_ids]


def consume(topic, count, *, bootstrap=None, linger=0.3, timeout=30):
    """Return all messages of `topic` as soon as there are `count`, and whatever else comes within `linger`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap or os.environ["KAFKA_BOOTSTRAP_SERVERS"],
            "group.id": str(uuid.uuid4()),
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        return list(_read(consumer, count, linger, time.monotonic() + timeout))
    finally:
        consumer.close()


def _read(consumer, count, linger, deadline):
    seen, until = 0, deadline if count else min(deadline, time.monotonic() + linger)
    while time.monotonic() < until:
        record = consumer.poll(min(0.1, linger))
        if record is None or record.error():
            continue
        yield record
        seen += 1
        if seen >= count:
            until = min(deadline, time.monotonic() + linger)


def values_by_key(records):
    """Return the values of each key, in the order of the topic."""
    values = {}
    for record in sorted(records, key=lambda record: (record.partition(), record.offset())):
        values.setdefault(record.key().decode(), []).append(record.value().decode())
    return values
