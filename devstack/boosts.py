"""An independent consumer of the events, with another Kafka library, as a consuming team would write it."""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from kafka import KafkaConsumer, TopicPartition

TOPIC = "pin.promotion.purchase-changed.v1"


@dataclass
class Seen:
    """What has arrived so far."""

    messages: int = 0
    purchases: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    delays: list[float] = field(default_factory=list)


class BoostConsumer:
    """Reads the topic in a thread and counts, per target kind, the boosts that would be taken off."""

    def __init__(self, bootstrap: str) -> None:
        self.seen = Seen()
        self._stopping = threading.Event()
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
        partitions = [TopicPartition(TOPIC, number) for number in self._consumer.partitions_for_topic(TOPIC) or ()]
        self._consumer.assign(partitions)
        self._consumer.seek_to_end()
        for partition in partitions:
            self._consumer.position(partition)
        self._thread = threading.Thread(target=self._read, name="consumer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _read(self) -> None:
        while not self._stopping.is_set():
            for messages in self._consumer.poll(timeout_ms=200).values():
                for message in messages:
                    self._take(json.loads(message.value), message.timestamp / 1000)

    def _take(self, event: dict[str, Any], published_at: float) -> None:
        self.seen.messages += 1
        self.seen.purchases[event["purchaseId"]] += 1
        first = event["eventId"] not in self.seen.events
        self.seen.events[event["eventId"]] += 1
        if first and event["status"] in {"Expired", "Cancelled"}:
            self.seen.targets.update(target["targetType"] for target in event["targets"])
            self.seen.delays.append(published_at - datetime.fromisoformat(event["occurredAt"]).timestamp())
