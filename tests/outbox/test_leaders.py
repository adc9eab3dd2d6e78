"""Partitions whose leader goes, moves and comes back; producers that are at their end."""

import time

import pytest

from devstack.mock import PRODUCE, MockCluster
from outbox import publisher as publisher_module
from outbox.draining import Relay
from outbox.models import Outbox
from outbox.outcomes import Failure
from outbox.partitions import partition_of
from outbox.publisher import Publisher
from tests.messages import consume, record, states, unsaved, values_by_key

pytestmark = pytest.mark.django_db(transaction=True)

OUT_OF_ORDER, FENCED = 45, 47
KEYS = [f"key {number}" for number in range(30)]
HELD = [key for key in KEYS if partition_of(key.encode(), 3) == 1]
FREE = [key for key in KEYS if key not in HELD]


@pytest.fixture(scope="module")
def brokers():
    with MockCluster(2) as cluster:
        yield cluster


@pytest.fixture
def parts(brokers, request):
    """A topic of its own of three partitions, all led by broker 1."""
    name = f"parts-{request.node.name}".translate(str.maketrans("[]", "--"))
    brokers.create_topic(name, 3)
    for partition in range(3):
        brokers.set_leader(name, partition, 1)
    yield name
    for number in (1, 2):
        brokers.set_up(number)
    brokers.set_rtt(1, 0)
    brokers.clear_errors(PRODUCE)


@pytest.fixture
def relay(brokers, no_stop, short_patience):
    return Relay(Publisher(brokers.bootstrap, {}), stop=no_stop, batch_size=20)


def drain_until(condition, relay, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        relay.drain()
        time.sleep(0.05)


def published(ids):
    return set(states(*ids)) == {"published"}


def test_partition_without_a_leader_holds_back_its_own_keys_alone(brokers, no_stop, parts):
    brokers.set_leader(parts, 1, -1)
    publisher = Publisher(brokers.bootstrap, {})
    publisher.probe()
    messages = [unsaved(key, topic=parts) for key in KEYS * 2] + [unsaved(HELD[0], topic="elsewhere")]

    outcome = publisher.publish(messages, stop=no_stop)

    assert not outcome.outage
    assert {m.key for m in messages if m.pk in outcome.acknowledged} == set(FREE)
    refused = {m.key: outcome.refused[m.pk] for m in messages[: len(KEYS)] if m.pk in outcome.refused}
    assert len(outcome.refused) == len(refused) == len(HELD)
    assert {refusal.failure for refusal in refused.values()} == {Failure.LEADERLESS}
    assert {refusal.reason for refusal in refused.values()} == {"partition 1 has no leader"}
    assert not Failure.LEADERLESS.spends_attempt


def test_lost_leader_costs_the_others_one_batch_and_nobody_an_attempt(brokers, relay, parts, monkeypatch):
    monkeypatch.setattr(publisher_module, "LEADERLESS_SECONDS", 0.2)
    brokers.set_down(2)
    brokers.set_leader(parts, 1, 2)
    held = [message for key in HELD for message in record(key, topic=parts, count=2)]
    assert not relay.drain()
    brokers.set_leader(parts, 1, -1)
    free = [message for key in FREE for message in record(key, topic=parts, count=5)]
    drain_until(lambda: published(free), relay)
    began, turns = time.monotonic(), 0

    while time.monotonic() - began < 1.5 * publisher_module.PUBLISH_SECONDS:
        free += record(FREE[turns % len(FREE)], topic=parts)
        assert relay.drain()  # one batch that waits for the others would be an outage
        assert published(free)
        turns += 1

    assert turns > 5
    assert not set(states(*held)) & {"published", "parked"}
    assert set(Outbox.objects.values_list("attempts", flat=True)) == {0}
    brokers.set_leader(parts, 1, 1)
    drain_until(lambda: published(held), relay)
    arrived = values_by_key(consume(parts, len(held + free), bootstrap=brokers.bootstrap))
    assert all(list(dict.fromkeys(arrived[key])) == ["{}0", "{}1"] for key in HELD)


def test_new_leader_is_found_and_the_order_holds(brokers, relay, parts):
    ids = record("k", topic=parts, count=30)
    assert relay.drain()
    for partition in range(3):
        brokers.set_leader(parts, partition, 2)
    brokers.set_down(1)

    ids += record("k", "later", topic=parts, count=30)
    drain_until(lambda: published(ids), relay)

    arrived = values_by_key(consume(parts, 60, bootstrap=brokers.bootstrap))["k"]
    assert list(dict.fromkeys(arrived)) == [f"{{}}{n}" for n in range(30)] + [f"later{n}" for n in range(30)]
    assert set(Outbox.objects.values_list("attempts", flat=True)) == {0}


@pytest.mark.parametrize("code", [OUT_OF_ORDER, FENCED])
def test_producer_at_its_end_is_replaced(brokers, relay, parts, code):
    record("k", topic=parts)
    assert relay.drain()
    ids = record("k", topic=parts, count=5)
    brokers.push_errors(PRODUCE, *[code] * 5)

    drain_until(lambda: published(ids), relay)

    assert set(Outbox.objects.values_list("attempts", flat=True)) == {0}


def test_slow_broker_is_no_outage(brokers, relay, parts):
    ids = record("k", topic=parts, count=50)
    brokers.set_rtt(1, 200)

    drain_until(lambda: published(ids), relay)

    arrived = values_by_key(consume(parts, 50, bootstrap=brokers.bootstrap))["k"]
    assert list(dict.fromkeys(arrived)) == [f"{{}}{n}" for n in range(50)]
    assert set(Outbox.objects.values_list("attempts", flat=True)) == {0}
