"""All of the topic, read from its beginning with a library that the product does not use."""

import time
from dataclasses import dataclass

from kafka import KafkaConsumer, TopicPartition

IDLE_SECONDS = 3.0  # without a message: the end (the small broker's own word on it is off by one batch)


@dataclass(frozen=True, slots=True)
class Record:
    """One message as it lies in the topic."""

    partition: int
    offset: int
    at: float
    key: str
    value: str
    headers: dict[str, str]


def read(bootstrap: str, topic: str) -> list[Record]:
    """Return every message, per partition in order."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        records: list[Record] = []
        until = time.monotonic() + IDLE_SECONDS
        while time.monotonic() < until:
            for batch in consumer.poll(timeout_ms=500).values():
                until = time.monotonic() + IDLE_SECONDS
                records += [
                    Record(
                        message.partition,
                        message.offset,
                        message.timestamp / 1000,
                        message.key.decode(),
                        message.value.decode(),
                        {name: value.decode() for name, value in message.headers},
                    )
                    for message in batch
                ]
        return records
    finally:
        consumer.close()
