"""What the publisher says of a batch, with a broker that refuses, is silent, or goes away.

The single partition holds every key, so a request carries several, and a refused one hits innocent messages.
"""

import time
from types import SimpleNamespace

import pytest

from devstack.mock import PRODUCE
from outbox.outcomes import Failure
from outbox.publisher import BrokerUnavailable, Publisher
from tests.messages import consume, values_by_key
from tests.messages import unsaved as message

TOO_LARGE, INVALID_RECORD, NOT_ENOUGH_REPLICAS, DENIED, REQUEST_TIMED_OUT, UNKNOWN_TOPIC = 10, 87, 19, 29, 7, 3
NETWORK = -195


def batch(*keys):
    return [message(key, f"{number}") for number, key in enumerate(keys)]


def failures(outcome):
    return {pk: refusal.failure for pk, refusal in outcome.refused.items()}


@pytest.fixture
def arrived(cluster, publisher):
    """Return what the topic has got since the test began: the values by key."""
    before = consume("test", 0, bootstrap=cluster.bootstrap)
    seen = {(record.partition(), record.offset()) for record in before}

    def read(count):
        records = consume("test", len(seen) + count, bootstrap=cluster.bootstrap)
        return values_by_key(r for r in records if (r.partition(), r.offset()) not in seen)

    return read


def test_everything_is_acknowledged_in_order(publisher, no_stop, arrived):
    messages = batch("a", "b", "a", "a", "b")

    outcome = publisher.publish(messages, stop=no_stop)

    assert list(outcome.acknowledged) == [m.pk for m in messages]
    offsets = [outcome.acknowledged[m.pk].offset for m in messages]
    assert offsets == list(range(offsets[0], offsets[0] + 5))
    assert arrived(5) == {"a": ["0", "2", "3"], "b": ["1", "4"]}


def test_only_the_guilty_of_a_refused_request_is_refused_and_stops_its_key(cluster, publisher, no_stop, arrived):
    messages = batch("a", "b", "c", "b", "a")
    cluster.push_errors(PRODUCE, TOO_LARGE, 0, TOO_LARGE)  # the request as a whole, then the second message alone

    outcome = publisher.publish(messages, stop=no_stop)

    assert failures(outcome) == {messages[1].pk: Failure.REJECTED}
    assert set(outcome.acknowledged) == {messages[0].pk, messages[2].pk, messages[4].pk}
    assert not outcome.outage
    assert arrived(3) == {"a": ["0", "4"], "c": ["2"]}


def test_innocent_messages_of_a_refused_request_are_acknowledged(cluster, publisher, no_stop, arrived):
    cluster.push_errors(PRODUCE, INVALID_RECORD)

    outcome = publisher.publish(batch("a", "b", "a"), stop=no_stop)

    assert len(outcome.acknowledged) == 3
    assert arrived(3) == {"a": ["0", "2"], "b": ["1"]}


def test_message_that_the_client_refuses_stops_its_key_alone(publisher, no_stop, arrived):
    messages = [message("a", "x" * 1_500_000), message("a", "1"), message("b", "2")]

    outcome = publisher.publish(messages, stop=no_stop)

    assert failures(outcome) == {messages[0].pk: Failure.REJECTED}
    assert list(outcome.acknowledged) == [messages[2].pk]
    assert arrived(1) == {"b": ["2"]}


@pytest.mark.parametrize("headers", [["list"], {"n": 1}, {"n": None}, {"n": {"deep": "x"}}, "text", 7])
def test_headers_that_are_no_texts_are_refused(publisher, no_stop, headers):
    outcome = publisher.publish([message(headers=headers), message("b")], stop=no_stop)

    assert list(failures(outcome).values()) == [Failure.REJECTED]
    assert len(outcome.acknowledged) == 1


def test_unknown_topic_refuses_the_first_of_each_of_its_keys_and_the_rest_goes_on(cluster, no_stop):
    messages = [*(message(key, topic="other") for key in "aab"), message("c")]
    cluster.topic_error("other", UNKNOWN_TOPIC)
    publisher = Publisher(cluster.bootstrap, {})

    outcome = publisher.publish(messages, stop=no_stop)

    assert failures(outcome) == {messages[0].pk: Failure.TOPIC, messages[2].pk: Failure.TOPIC}
    assert list(outcome.acknowledged) == [messages[3].pk]
    cluster.topic_error("other", 0)
    assert len(publisher.publish(messages[:3], stop=no_stop).acknowledged) == 3


@pytest.mark.parametrize("linger", ["1000", "0"], ids=["one request", "several requests"])
def test_denied_topic_refuses_the_first_of_each_of_its_keys(cluster, no_stop, linger):
    """Also when the word on the first request comes while others are still being handed over."""
    publisher = Publisher(cluster.bootstrap, {"linger.ms": linger})
    assert publisher.publish(batch("warm"), stop=no_stop).acknowledged
    messages = [*batch("a", "a", "b"), *batch(*["c"] * 500)]
    cluster.push_errors(PRODUCE, DENIED)

    outcome = publisher.publish(messages, stop=no_stop)

    assert failures(outcome) == {messages[n].pk: Failure.DENIED for n in (0, 2, 3)}
    assert not outcome.acknowledged


def test_nothing_overtakes_a_refused_request(cluster, no_stop, arrived):
    """Were the second request under way already, the broker would take it."""
    publisher = Publisher(cluster.bootstrap, {"linger.ms": "0", "batch.num.messages": "1"})
    assert publisher.publish(batch("warm"), stop=no_stop).acknowledged
    cluster.set_rtt(1, 30)
    cluster.push_errors(PRODUCE, TOO_LARGE)

    outcome = publisher.publish(batch("a", "a", "a"), stop=no_stop)

    assert len(outcome.acknowledged) == 3  # alone, each goes through
    assert arrived(4)["a"] == ["0", "1", "2"]


@pytest.mark.parametrize("code", [NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT, NETWORK])
def test_passing_trouble_of_the_broker_leaves_no_trace(cluster, publisher, no_stop, arrived, code):
    cluster.push_errors(PRODUCE, code, code)

    outcome = publisher.publish(batch("a", "b", "a"), stop=no_stop)

    assert len(outcome.acknowledged) == 3
    assert arrived(3) == {"a": ["0", "2"], "b": ["1"]}


def test_silent_broker_is_an_outage_and_nobodys_fault(cluster, short_patience, no_stop):
    publisher = Publisher(cluster.bootstrap, {})
    publisher.probe()
    cluster.set_rtt(1, 10_000)
    began = time.monotonic()

    outcome = publisher.publish([message(topic="silent")], stop=no_stop)

    assert (outcome.acknowledged, outcome.refused) == ({}, {})
    assert outcome.outage
    assert time.monotonic() - began < 5
    with pytest.raises(BrokerUnavailable):
        publisher.probe()
    cluster.set_rtt(1, 0)
    publisher.probe()
    assert len(publisher.publish(batch("a"), stop=no_stop).acknowledged) == 1


def test_time_that_is_over_for_single_messages_is_no_outage(cluster, no_stop, monkeypatch):
    """The broker answers, only slowly; what is left goes with the next batch."""
    monkeypatch.setattr("outbox.publisher.PUBLISH_SECONDS", 4.0)
    publisher = Publisher(cluster.bootstrap, {"linger.ms": "500"})
    assert publisher.publish(batch("warm"), stop=no_stop).acknowledged
    cluster.set_rtt(1, 150)
    cluster.push_errors(PRODUCE, INVALID_RECORD)  # the request as a whole

    outcome = publisher.publish(batch(*map(str, range(60))), stop=no_stop)

    assert 0 < len(outcome.acknowledged) < 60
    assert not outcome.outage
    assert not outcome.refused


def test_broker_that_is_away_is_told_by_the_probe(cluster, short_patience):
    cluster.set_down(1)
    publisher = Publisher(cluster.bootstrap, {})

    with pytest.raises(BrokerUnavailable, match=r"(?i)refused|_TRANSPORT|down"):
        publisher.probe()

    cluster.set_up(1)
    publisher.probe()


def test_stop_leaves_a_silent_broker_alone(cluster, publisher, monkeypatch):
    monkeypatch.setattr("outbox.publisher.STOPPING_SECONDS", 0.2)
    cluster.set_rtt(1, 10_000)
    began = time.monotonic()

    outcome = publisher.publish([message(topic="silent")], stop=SimpleNamespace(requested=True, hurried=False))

    assert time.monotonic() - began < 3
    assert not outcome.outage
    assert not outcome.acknowledged


def test_full_queue_is_waited_for(cluster, no_stop):
    publisher = Publisher(cluster.bootstrap, {"queue.buffering.max.messages": "10"})
    publisher.probe()

    outcome = publisher.publish(batch(*["a"] * 200), stop=no_stop)

    assert len(outcome.acknowledged) == 200


def test_reason_quotes_nothing_of_the_message(publisher, no_stop):
    outcome = publisher.publish([message("secret", "secret" * 300_000)], stop=no_stop)

    (refusal,) = outcome.refused.values()
    assert refusal.reason == "MSG_SIZE_TOO_LARGE: Broker: Message size too large"
