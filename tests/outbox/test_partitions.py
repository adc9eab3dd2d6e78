"""Where a key goes: exactly where librdkafka puts it."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from outbox.partitions import Partitions, partition_of
from tests.messages import consume, unsaved


def metadata(**topics):
    """What a broker would say: of each topic the leaders of its partitions."""
    led = {
        name: SimpleNamespace(partitions={n: SimpleNamespace(leader=leader) for n, leader in enumerate(leaders)})
        for name, leaders in topics.items()
    }
    return SimpleNamespace(topics=led)


def test_keys_go_where_the_java_client_puts_them():
    """The values of Kafka's own test of murmur2, modulo what a partition number keeps of them."""
    known = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
             "a-little-bit-longer-string": -1486304829, "abc": 479470107}  # fmt: skip
    assert {key: partition_of(key.encode(), 1_000_003) for key in known} == {
        key: (value & 0x7FFFFFFF) % 1_000_003 for key, value in known.items()
    }


def test_keys_go_where_the_publisher_puts_them(cluster, publisher, no_stop):
    cluster.create_topic("spread", 7)
    keys = ["", "é", "ключ", "鍵" * 50, *(f"key {number}" * (number % 9 + 1) for number in range(100))]

    outcome = publisher.publish([unsaved(key, topic="spread") for key in keys], stop=no_stop)

    assert len(outcome.acknowledged) == len(keys)
    records = consume("spread", len(keys), bootstrap=cluster.bootstrap)
    assert all(record.partition() == partition_of(record.key() or b"", 7) for record in records)


def test_only_keys_of_a_leaderless_partition_are_held_back():
    partitions = Partitions()
    partitions.learn(metadata(a=[1, -1, 2], b=[1]))
    for key in map(str, range(50)):
        number = partition_of(key.encode(), 3)
        assert partitions.leaderless("a", key) == (1 if number == 1 else None)
        assert partitions.leaderless("b", key) is None
        assert partitions.leaderless("unknown", key) is None
    assert not partitions.all_led

    partitions.learn(metadata(a=[1, 2, 2], b=[1]))
    assert partitions.all_led
    assert partitions.leaderless("a", "1") is None


@given(st.binary(max_size=40), st.integers(1, 200))
def test_every_key_has_a_partition(key, count):
    assert 0 <= partition_of(key, count) < count
