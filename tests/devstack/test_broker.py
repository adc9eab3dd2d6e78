import os

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from devstack import broker as broker_module
from devstack.broker import EmbeddedBroker, create_topic
from devstack.errors import DevstackError
from devstack.mock import MockCluster
from tests.devstack.survivors import assert_gone, family


def publish(bootstrap, topic, messages, **properties):
    """The partition of each acknowledged message; whatever is not acknowledged fails the test."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "acks": "all", **properties})
    partitions = []
    for key, text in messages:
        producer.produce(
            topic, text, key=key, on_delivery=lambda error, message: partitions.append(error or message.partition())
        )
    assert producer.flush(30) == 0
    return partitions


def consume(bootstrap, topic, count, **properties):
    settings = {"group.id": os.urandom(4).hex(), "auto.offset.reset": "earliest", "log_level": 0, **properties}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    # Not subscribe: Tansu lets a member join its group only after half the session timeout.
    partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    received = []
    while len(received) < count and (message := consumer.poll(20)) is not None:
        received.append((message.key(), message.value()))
    consumer.close()
    return received


MESSAGES = [(b"key-%d" % (number % 5), b"text-%d" % number) for number in range(20)]


@pytest.mark.broker
def test_messages_make_the_round_trip_through_three_partitions():
    bootstrap, topic = os.environ["KAFKA_BOOTSTRAP_SERVERS"], f"round-trip-{os.urandom(4).hex()}"
    create_topic(bootstrap, topic, 3)
    create_topic(bootstrap, topic, 3)
    settings = {"enable.idempotence": True, "partitioner": "murmur2_random"}
    partitions = publish(bootstrap, topic, MESSAGES, **settings)
    assert set(partitions) <= {0, 1, 2}
    assert len(set(partitions)) > 1
    assert sorted(consume(bootstrap, topic, 20)) == sorted(MESSAGES)


def test_stop_leaves_nothing_even_with_a_client_connected():
    before = set(family())
    with EmbeddedBroker() as broker:
        create_topic(broker.bootstrap, "topic")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        assert "topic" in producer.list_topics(timeout=10).topics
        started, folder = set(family()) - before, broker.guarded.path
    assert len(started) == 2
    assert_gone(started, [folder], seconds=0)


@pytest.mark.parametrize("end", ["restart", "kill"])
def test_it_comes_back_empty_on_the_same_port(end):
    with EmbeddedBroker() as broker:
        bootstrap = broker.bootstrap
        create_topic(bootstrap, "topic", 2)
        getattr(broker, end)()
        broker.start()
        assert broker.bootstrap == bootstrap
        assert "topic" not in Producer({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics


def test_a_topic_that_cannot_be_created_is_reported(monkeypatch):
    monkeypatch.setattr(broker_module, "_ADMIN_SECONDS", 0.5)  # the mock cluster does not know this request
    with MockCluster() as mock, pytest.raises(DevstackError, match=r"cannot create topic thing on 127\.0\.0\.1:\d+: "):
        create_topic(mock.bootstrap, "thing", 1)
