"""Hands messages to Kafka. Nothing but this and `reading` knows confluent_kafka.

Note [Order]: a gapless idempotent producer sends the batch in one go. At the first refusal it stops for good, and a
broker takes nothing behind a gap, so nothing overtakes a refused message. A broker that has nothing of this producer
in a partition yet cannot see a gap, though; so the first message of each key goes ahead of the rest. And a broker
refuses whole requests, innocent messages included; so whatever is not acknowledged then goes again through a second
producer, one message at a time, and only the guilty is refused. A refused message stops its key.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from outbox.models import Outbox
from outbox.outcomes import Acknowledgement, Failure, Outcome, Refusal
from outbox.partitions import Partitions
from pinpromo.stop import Stop

DELIVERY_SECONDS = 6.0  # librdkafka gives a message up after this time
PUBLISH_SECONDS = 7.0  # ... and the publisher a batch after this,
STOPPING_SECONDS = 3.0  # or after this, once a stop is asked for
PROBE_SECONDS = 2.0
LEADERLESS_SECONDS = 1.0  # between two looks whether a partition has a leader again

_IN_VAIN = Refusal(Failure.UNKNOWN, "no acknowledgement in time")


class BrokerUnavailable(Exception):  # noqa: N818
    """No broker answers, or none lets the relay in; the text says why."""


class InvalidProperty(ValueError):  # noqa: N818
    """A KAFKA_* variable holds a property, or a value, that librdkafka does not take."""


class Publisher:
    """Publishes batches of messages. `properties` are librdkafka's, as given by the KAFKA_* variables."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str]) -> None:
        """Raises InvalidProperty."""
        self._given = {"bootstrap.servers": bootstrap_servers, **properties}
        self._complaint = ""
        self._answers = False
        self._partitions = Partitions()
        self._looked_at = 0.0
        # By event id: acknowledged, while the database has not taken the mark so far. Not by the message's number,
        # which after a restored backup can be another message's.
        self.unmarked: dict[uuid.UUID, Acknowledgement] = {}
        self._producer: Producer | None = self._create(gapless=True)

    def probe(self) -> None:
        """Make sure that a broker answers, unless the last batch went well; learn which partitions have no leader.

        Raises BrokerUnavailable in 2 seconds.
        """
        self._producer = self._producer or self._create(gapless=True)
        if self._answers and (self._partitions.all_led or time.monotonic() < self._looked_at + LEADERLESS_SECONDS):
            return
        self._complaint = ""
        try:
            self._partitions.learn(self._producer.list_topics(timeout=PROBE_SECONDS))
        except KafkaException as error:
            _serve(self._producer, 0)
            raise BrokerUnavailable(self._complaint or _describe(error.args[0])) from error
        self._answers, self._looked_at = True, time.monotonic()

    def publish(self, messages: Sequence[Outbox], *, stop: Stop) -> Outcome:
        """Publish `messages`, those of one key in this order, in PUBLISH_SECONDS at most."""
        outcome = Outcome()
        if ready := self._set_leaderless_aside(messages, outcome):
            self._send(ready, outcome, stop)
        return outcome

    def _set_leaderless_aside(self, messages: Sequence[Outbox], outcome: Outcome) -> Sequence[Outbox]:
        """Refuse the first message of each key whose partition has no leader; return those that do not stand behind."""
        if self._partitions.all_led:
            return messages
        ready, stopped = list[Outbox](), set[str]()
        for message in messages:
            partition = self._partitions.leaderless(message.topic, message.key)
            if partition is not None and message.key not in stopped:
                outcome.refused[message.pk] = Refusal(Failure.LEADERLESS, f"partition {partition} has no leader")
                stopped.add(message.key)
            elif message.key not in stopped:
                ready.append(message)
        return ready

    def _send(self, messages: Sequence[Outbox], outcome: Outcome, stop: Stop) -> None:
        self._complaint = ""
        patience = _Patience(PUBLISH_SECONDS, stop)
        producer, self._producer = self._producer or self._create(gapless=True), None
        reports = _send_together(_Flight(producer, outcome, patience), messages)
        if any(report.failure is not Failure.UNKNOWN for report in reports.values()):
            rest = [message for message in messages if message.pk not in outcome.acknowledged]
            condemned = {
                message.topic: reports[message.pk]
                for message in rest
                if message.pk in reports and reports[message.pk].failure.concerns_topic
            }
            reports = _send_singly(_Flight(self._create(gapless=False), outcome, patience), rest, condemned)
        if len(outcome.acknowledged) == len(messages):
            self._producer = producer
        elif reports and not stop.requested:
            self._answers = False
            outcome.outage = self._complaint or next(iter(reports.values())).reason

    def _create(self, *, gapless: bool) -> Producer:
        configuration: dict[str, Any] = {
            "client.id": "pinpromo-relay",
            "reconnect.backoff.max.ms": 1_000,
            "topic.metadata.propagation.max.ms": 1_000,  # then a topic counts as unknown
            "batch.size": 131_072,
            **self._given,
            "acks": "all",
            "enable.idempotence": True,
            "enable.gapless.guarantee": gapless,
            "partitioner": "murmur2_random",
            "message.timeout.ms": int(DELIVERY_SECONDS * 1000),
            "error_cb": self._complain,
            "logger": _librdkafka,
        }
        try:
            return Producer(configuration)
        except KafkaException as error:
            raise InvalidProperty(self._explain(error.args[0].str())) from error

    def _complain(self, error: KafkaError) -> None:
        self._complaint = f"{error.name()}: {error.str()}"

    def _explain(self, complaint: str) -> str:
        """Name the variable to blame in librdkafka's complaint, and leave out every value given."""
        blamed = [name for name in self._given if f'"{name}"' in complaint or complaint.startswith(f"{name} ")]
        for value in self._given.values():
            complaint = complaint.replace(value, "...")
        variables = [f"KAFKA_{name.upper().replace('.', '_')}" for name in blamed or self._given]
        return f"{', '.join(variables)}: {complaint}"


class _Patience:
    """How long a batch may take: so many seconds, fewer once a stop is asked for, none once it is hurried."""

    def __init__(self, seconds: float, stop: Stop) -> None:
        self._until = time.monotonic() + seconds
        self._stop = stop
        self._stopping = False

    @property
    def over(self) -> bool:
        if self._stop.requested and not self._stopping:
            self._stopping = True
            self._until = min(self._until, time.monotonic() + STOPPING_SECONDS)
        return self._stop.hurried or time.monotonic() >= self._until


class _Flight:
    """Messages on their way through one producer."""

    def __init__(self, producer: Producer, outcome: Outcome, patience: _Patience) -> None:
        self._producer = producer
        self._patience = patience
        self.outcome = outcome
        self._underway: set[int] = set()
        self._reports: dict[int, Refusal] = {}

    def add(self, message: Outbox) -> Refusal | None:
        """Hand `message` to librdkafka; return why not, if it does not take it."""
        headers = message.headers
        if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
            return Refusal(Failure.REJECTED, "the headers are not a JSON object of texts")
        while not self._patience.over:
            try:
                self._producer.produce(
                    message.topic,
                    message.payload.encode(),
                    message.key.encode(),
                    headers=[(name, value.encode()) for name, value in headers.items()],
                    on_delivery=self._reporter(message.pk),
                )
                self._underway.add(message.pk)
                return None
            except BufferError:  # librdkafka's queue is full
                _serve(self._producer, 0.1)
            except KafkaException as error:
                return _refusal(error.args[0])
            except (TypeError, ValueError) as error:
                return Refusal(Failure.REJECTED, f"the client cannot express the message ({type(error).__name__})")
        return _IN_VAIN

    def land(self) -> Mapping[int, Refusal]:
        """Wait until there is a report on every message, or no time left; return the negative ones."""
        while len(self._producer) and not self._patience.over:
            _serve(self._producer, 0.1)
        open_ones = self._underway - self.outcome.acknowledged.keys() - self._reports.keys()
        return self._reports | dict.fromkeys(open_ones, _IN_VAIN)

    def send(self, message: Outbox) -> Refusal | None:
        """Send `message` alone; return why it is not acknowledged, if it is not."""
        return self.add(message) or self.land().get(message.pk)

    def _reporter(self, message_id: int) -> Callable[[KafkaError | None, Message], None]:
        def report(error: KafkaError | None, record: Message) -> None:
            if error is None:
                self.outcome.acknowledged[message_id] = Acknowledgement(record.partition(), record.offset())
            else:
                self._reports[message_id] = _refusal(error)

        return report


def _send_together(flight: _Flight, messages: Sequence[Outbox]) -> Mapping[int, Refusal]:
    """Send all in two waves; return the reports on those not acknowledged, which may be the fault of others."""
    stopped: set[str] = set()
    first = {message.key: message.pk for message in reversed(messages)}
    ahead = [message for message in messages if message.pk == first[message.key]]
    behind = [message for message in messages if message.pk != first[message.key]]
    return _send_wave(flight, ahead, stopped) or _send_wave(flight, behind, stopped)


def _send_wave(flight: _Flight, messages: Sequence[Outbox], stopped: set[str]) -> Mapping[int, Refusal]:
    for message in messages:
        if message.key in stopped:
            continue
        refusal = flight.add(message)
        if refusal is None:
            continue
        if refusal.failure is Failure.UNKNOWN:  # perhaps because of the report on an earlier one
            return {**flight.land(), message.pk: refusal}
        flight.outcome.refused[message.pk] = refusal
        stopped.add(message.key)
    return flight.land()


def _send_singly(flight: _Flight, messages: Iterable[Outbox], condemned: dict[str, Refusal]) -> Mapping[int, Refusal]:
    """Send one after the other, so that each report is about one message; return the one that ended it early.

    `condemned` says of which topics it is known already that nothing can be published to them.
    """
    refused = flight.outcome.refused
    stopped = {message.key for message in messages if message.pk in refused}
    for message in messages:
        if message.key in stopped:
            continue
        refusal = condemned.get(message.topic) or flight.send(message)
        if refusal is None:
            continue
        if refusal.failure is Failure.UNKNOWN:
            slow_but_sure = refusal is _IN_VAIN and (refused or flight.outcome.acknowledged)
            return {} if slow_but_sure else {message.pk: refusal}
        refused[message.pk] = refusal
        stopped.add(message.key)
        if refusal.failure.concerns_topic:
            condemned[message.topic] = refusal
    return {}


def _serve(producer: Producer, seconds: float) -> None:
    """Send what is queued, and call the delivery reports. They tell of a fatal error too, so that is no news."""
    try:
        producer.flush(seconds)
    except KafkaException as error:
        _librdkafka.info("%s", error.args[0].name())


def _refusal(error: KafkaError) -> Refusal:
    return Refusal(Failure.named(error.name()), _describe(error))


def _describe(error: KafkaError) -> str:
    """The general text of the error's code; the broker's own might quote the message."""
    return f"{error.name()}: {KafkaError(error.code()).str()}"


class _AsDebug(logging.LoggerAdapter[logging.Logger]):
    """librdkafka logs each failed connection as an error; the relay tells of an outage in its own manner."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        super().log(min(level, logging.DEBUG), msg, *args, **kwargs)


_librdkafka = _AsDebug(logging.getLogger("outbox.librdkafka"), {})
