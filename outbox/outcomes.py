"""What became of a batch of messages: the publisher's answer to the relay."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

# Kafka's words on the broker, the connection or the producer: they say nothing of a message. Those of librdkafka
# itself begin with an underscore and are of this kind too, but for the few named below.
_OF_THE_BROKER = frozenset(
    {
        "BROKER_NOT_AVAILABLE",
        "CLUSTER_AUTHORIZATION_FAILED",
        "CONCURRENT_TRANSACTIONS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "DUPLICATE_SEQUENCE_NUMBER",
        "FENCED_LEADER_EPOCH",
        "ILLEGAL_SASL_STATE",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_PRODUCER_ID_MAPPING",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
        "LOG_DIR_NOT_FOUND",
        "NETWORK_EXCEPTION",
        "NOT_CONTROLLER",
        "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_LEADER_FOR_PARTITION",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "PRODUCER_FENCED",
        "REPLICA_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "SASL_AUTHENTICATION_FAILED",
        "SECURITY_DISABLED",
        "STALE_CTRL_EPOCH",
        "THROTTLING_QUOTA_EXCEEDED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_PRODUCER_ID",
        "UNSUPPORTED_SASL_MECHANISM",
        "UNSUPPORTED_VERSION",
    }
)
_OF_THE_TOPIC = frozenset({"UNKNOWN_TOPIC_OR_PART", "TOPIC_EXCEPTION", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"})
_OF_THE_RIGHTS = frozenset({"TOPIC_AUTHORIZATION_FAILED"})
_OF_THE_MESSAGE = frozenset({"_BAD_MSG", "_INVALID_ARG"})


class Failure(StrEnum):
    """Why a message is not published yet; also the label `reason` of the error metric."""

    REJECTED = "rejected"  # this very message is refused, by the broker or already by the client
    TOPIC = "topic"  # the topic does not exist, or its name is impossible
    DENIED = "denied"  # the relay may not write to the topic
    LEADERLESS = "leaderless"  # its partition has no leader; those of other partitions go on
    UNKNOWN = "unknown"  # no word, or one that says nothing of the message

    @classmethod
    def named(cls, name: str) -> Failure:
        """Return what Kafka's error `name` means for a message that was sent alone."""
        if name in _OF_THE_TOPIC:
            return cls.TOPIC
        if name in _OF_THE_RIGHTS:
            return cls.DENIED
        if name in _OF_THE_BROKER or (name.startswith("_") and name not in _OF_THE_MESSAGE):
            return cls.UNKNOWN
        return cls.REJECTED

    @property
    def spends_attempt(self) -> bool:
        """Whether it tells something about the message itself."""
        return self in {Failure.REJECTED, Failure.TOPIC}

    @property
    def concerns_topic(self) -> bool:
        """Whether every other message to the topic would fail in the same way."""
        return self in {Failure.TOPIC, Failure.DENIED}


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Where the broker has stored a message, as far as it says so."""

    partition: int | None
    offset: int | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failure, and its reason in one line that quotes nothing of the message."""

    failure: Failure
    reason: str


@dataclass(slots=True)
class Outcome:
    """By message id: what was acknowledged, what was refused. The rest is unknown and goes again."""

    acknowledged: dict[int, Acknowledgement] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    outage: str = ""  # why there is a rest, if the broker is to blame
