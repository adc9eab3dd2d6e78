import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from devstack.errors import DevstackError
from devstack.mock import PRODUCE, MockCluster
from tests.devstack.survivors import assert_gone, family


@pytest.fixture(scope="module")
def mock():
    with MockCluster(2) as cluster:
        cluster.create_topic("topic", 3)
        cluster.create_topic("topic", 3)
        yield cluster


def outcome(mock, topic="topic", **properties):
    """What becomes of one message within 1.5 s: its error code, or None when it is acknowledged."""
    settings = {"message.timeout.ms": 1500, "log_level": 0, "error_cb": lambda error: None, **properties}
    producer = Producer({"bootstrap.servers": mock.bootstrap, **settings})
    outcomes = []
    producer.produce(topic, b"text", key=b"key", on_delivery=lambda error, _: outcomes.append(error and error.code()))
    producer.flush(10)
    return outcomes[0]


def test_topics_have_the_partitions_asked_for(mock):
    topics = Producer({"bootstrap.servers": mock.bootstrap}).list_topics(timeout=10).topics
    assert {name: len(topic.partitions) for name, topic in topics.items()}["topic"] == 3
    assert outcome(mock) is None


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.MSG_SIZE_TOO_LARGE),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED),
        (KafkaError.REQUEST_TIMED_OUT, None),  # librdkafka tries again
        (KafkaError._TRANSPORT, None),
    ],
)
def test_a_pushed_error_hits_the_next_request_once(mock, code, seen):
    mock.push_errors(PRODUCE, code)
    assert [outcome(mock), outcome(mock)] == [seen, None]


def test_pushed_errors_are_forgotten_on_request(mock):
    mock.push_errors(PRODUCE, *[KafkaError.MSG_SIZE_TOO_LARGE] * 9)
    mock.clear_errors(PRODUCE)
    assert outcome(mock) is None


def test_a_fatal_error_reaches_an_idempotent_producer(mock):
    mock.push_errors(PRODUCE, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
    with pytest.raises((KafkaException, SystemError)):
        outcome(mock, **{"enable.idempotence": True})


def test_brokers_go_down_and_come_up(mock):
    for broker in (1, 2):
        mock.set_down(broker)
    assert outcome(mock) == KafkaError._MSG_TIMED_OUT
    for broker in (1, 2):
        mock.set_up(broker)
    assert outcome(mock, **{"message.timeout.ms": 10_000}) is None


def test_a_slow_broker(mock):
    for broker in (1, 2):
        mock.set_rtt(broker, 2000)
    assert outcome(mock) == KafkaError._MSG_TIMED_OUT
    for broker in (1, 2):
        mock.set_rtt(broker, 0)
    assert outcome(mock, **{"message.timeout.ms": 10_000}) is None


def test_a_topic_with_an_error(mock):
    mock.topic_error("topic", KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert outcome(mock) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    mock.topic_error("topic", 0)
    assert outcome(mock) is None


def test_partitions_without_a_leader(mock):
    for partition in range(3):
        mock.set_leader("topic", partition, -1)
    assert outcome(mock) == KafkaError._MSG_TIMED_OUT
    for partition in range(3):
        mock.set_leader("topic", partition, 2)
    assert outcome(mock) is None


def test_a_refusal_is_reported(mock):
    with pytest.raises(DevstackError, match=r"the mock cluster refuses: .* \(3\)"):
        mock.set_leader("topic", 99, 1)


def test_stop_leaves_nothing():
    before = set(family())
    with MockCluster() as cluster:
        started = set(family()) - before
    assert len(started) == 1
    assert_gone(started, seconds=0)
    with pytest.raises(DevstackError, match="has not been started"):
        cluster.set_up()
