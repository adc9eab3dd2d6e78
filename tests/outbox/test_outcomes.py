"""What Kafka's errors mean for a message."""

import pytest

from outbox.outcomes import Failure


@pytest.mark.parametrize(
    "name",
    ["MSG_SIZE_TOO_LARGE", "INVALID_MSG", "INVALID_RECORD", "RECORD_LIST_TOO_LARGE", "POLICY_VIOLATION", "UNKNOWN"],
)
def test_words_on_the_message_spend_an_attempt(name):
    assert Failure.named(name) is Failure.REJECTED
    assert Failure.REJECTED.spends_attempt


@pytest.mark.parametrize("name", ["UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "TOPIC_EXCEPTION"])
def test_words_on_the_topic_spend_an_attempt(name):
    assert Failure.named(name) is Failure.TOPIC
    assert Failure.TOPIC.spends_attempt


def test_missing_right_spends_none():
    assert Failure.named("TOPIC_AUTHORIZATION_FAILED") is Failure.DENIED
    assert not Failure.DENIED.spends_attempt


@pytest.mark.parametrize(
    "name",
    [
        "_MSG_TIMED_OUT",
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_AUTHENTICATION",
        "_PURGE_QUEUE",
        "_GAPLESS_GUARANTEE",
        "_A_NEW_ONE_OF_LIBRDKAFKA",
        "NOT_ENOUGH_REPLICAS",
        "NOT_LEADER_FOR_PARTITION",
        "REQUEST_TIMED_OUT",
        "CLUSTER_AUTHORIZATION_FAILED",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
    ],
)
def test_words_on_the_broker_or_the_producer_spend_none(name):
    assert Failure.named(name) is Failure.UNKNOWN
    assert not Failure.UNKNOWN.spends_attempt
