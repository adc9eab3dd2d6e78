"""Which partition a key goes to, and which partitions nobody leads at the moment.

librdkafka keeps messages for a partition without a leader until they time out, and the whole batch waits with them. So
the publisher asks before it sends, and must know where librdkafka would put a key: by Kafka's murmur2.
"""

from __future__ import annotations

from typing import Any

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_32_BITS = 0xFFFFFFFF


class Partitions:
    """The partitions of all topics, as the broker last told of them."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._leaderless: set[tuple[str, int]] = set()

    def learn(self, metadata: Any) -> None:
        """Take over what a broker says: confluent_kafka's ClusterMetadata."""
        self._counts = {name: len(topic.partitions) for name, topic in metadata.topics.items()}
        self._leaderless = {
            (name, number)
            for name, topic in metadata.topics.items()
            for number, partition in topic.partitions.items()
            if partition.leader < 0
        }

    @property
    def all_led(self) -> bool:
        return not self._leaderless

    def leaderless(self, topic: str, key: str) -> int | None:
        """Return the partition that `key` goes to, if it has no leader."""
        if not self._leaderless or topic not in self._counts:
            return None
        partition = partition_of(key.encode(), self._counts[topic])
        return partition if (topic, partition) in self._leaderless else None


def partition_of(key: bytes, count: int) -> int:
    """Return which of `count` partitions the partitioner `murmur2_random` chooses for `key`."""
    return (_murmur2(key) & 0x7FFFFFFF) % count


def _murmur2(key: bytes) -> int:
    whole = len(key) & ~3
    mixed = _SEED ^ len(key)
    for start in range(0, whole, 4):
        word = int.from_bytes(key[start : start + 4], "little") * _FACTOR & _32_BITS
        word = (word ^ word >> 24) * _FACTOR & _32_BITS
        mixed = (mixed * _FACTOR & _32_BITS) ^ word
    if rest := key[whole:]:
        mixed = (mixed ^ int.from_bytes(rest, "little")) * _FACTOR & _32_BITS
    mixed = (mixed ^ mixed >> 13) * _FACTOR & _32_BITS
    return mixed ^ mixed >> 15
