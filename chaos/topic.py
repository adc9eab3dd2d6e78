"""All of the topics, read from its beginning with a library that the product does not use."""

import time
from collections.abc import Collection

from kafka import KafkaConsumer, TopicPartition

from chaos.records import Record

IDLE_SECONDS = 3.0  # without a message: the end (the small broker's own word on it is off by one batch)


def read(bootstrap: str, topics: Collection[str]) -> list[Record]:
    """Return every message, per partition in order."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    try:
        partitions = [
            TopicPartition(topic, number)
            for topic in sorted(topics)
            for number in consumer.partitions_for_topic(topic) or ()
        ]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        records: list[Record] = []
        until = time.monotonic() + IDLE_SECONDS
        while time.monotonic() < until:
            for batch in consumer.poll(timeout_ms=500).values():
                until = time.monotonic() + IDLE_SECONDS
                records += [
                    Record(
                        message.topic,
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
