"""Reads a topic back, for the comparison with what was recorded. Knows confluent_kafka, like the publisher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from outbox.publisher import BrokerUnavailable

SILENCE = 5.0  # seconds without a message, after which there is none


@dataclass(frozen=True, slots=True)
class Read:
    """A message of the topic, byte by byte."""

    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: Mapping[str, bytes]


class Reader:
    """Reads ranges of one topic, outside any consumer group. A context manager."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str], topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer(
            {
                **properties,
                "bootstrap.servers": bootstrap_servers,
                "group.id": "pinpromo-verify",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_error: object) -> None:
        self._consumer.close()

    def first_offset(self, partition: int) -> int:
        """Return the oldest offset that the topic still has. Raises BrokerUnavailable."""
        try:
            low: int = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=SILENCE)[0]
        except KafkaException as error:
            raise BrokerUnavailable(error.args[0].name()) from error
        return low

    def read(self, partition: int, first: int, last: int) -> Iterator[Read]:
        """Yield the messages at the offsets from `first` to `last`, both included, as far as there are any."""
        self._consumer.assign([TopicPartition(self._topic, partition, first)])
        while (record := self._poll()) is not None:
            if error := record.error():
                raise BrokerUnavailable(error.name())
            if (offset := record.offset()) <= last:
                headers = {name: value or b"" for name, value in record.headers() or []}
                yield Read(partition, offset, record.key() or b"", record.value() or b"", headers)
            if offset >= last:
                return

    def _poll(self) -> Any:
        """Return the next message, whose parts are all known to be there; None after a silence."""
        return self._consumer.poll(SILENCE)
