"""verify_outbox finds every difference between the outbox and the topic, and none where there is none."""

import json
import os

import pytest
from confluent_kafka import Producer

from outbox.models import Outbox
from tests.messages import record
from tests.programs import manage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.broker]


@pytest.fixture
def published(topic):
    """Three messages of one key and one of another, published."""
    ids = record("a", topic=topic, count=3, headers={"h": "ü"}) + record("b", topic=topic)
    assert manage("relay_outbox").returncode == 0
    return ids


def verify(topic):
    done = manage("verify_outbox", "--topic", topic, "--json")
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def put(topic, key, value, **options):
    producer = Producer({"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "partitioner": "murmur2_random"})
    producer.produce(topic, value, key, **options)
    assert producer.flush(30) == 0


def test_nothing_to_find(topic, published):
    code, result = verify(topic)

    assert code == 0
    assert (result["published"], result["found"], result["duplicates"]) == (4, 4, 0)


def test_changed_payload_is_found(topic, published):
    Outbox.objects.filter(pk=published[1]).update(payload="another")

    code, result = verify(topic)

    assert (code, result["differing"], result["missing"]) == (1, [published[1]], [])


def test_message_that_is_not_there_is_found(topic, published):
    (lost,) = record("a", topic=topic, published_at="2026-01-01T00:00Z", published_partition=0, published_offset=0)
    Outbox.objects.filter(pk=published[0]).update(published_offset=None)
    place = Outbox.objects.get(pk=published[1])
    Outbox.objects.filter(pk=lost).update(
        published_partition=place.published_partition, published_offset=place.published_offset + 500
    )

    code, result = verify(topic)

    assert (code, result["missing"]) == (1, [lost])


def test_foreign_and_repeated_messages_are_told_apart(topic, published):
    put(topic, "a", "{}0", headers={"h": "ü".encode()})
    put(topic, "a", "never recorded")
    record("a", topic=topic)
    assert manage("relay_outbox").returncode == 0

    code, result = verify(topic)

    assert (code, result["duplicates"], len(result["foreign"])) == (1, 1, 1)
    assert result["missing"] == result["differing"] == result["out_of_order"] == []


def test_wrong_order_is_found(topic, published):
    later, earlier = published[1], published[0]
    Outbox.objects.filter(pk__in=[later, earlier]).delete()
    place = Outbox.objects.get(pk=published[2])
    put(topic, "a", "late")
    record(
        "a", "late", topic=topic, id=earlier, published_at="2026-01-01T00:00Z",
        published_partition=place.published_partition, published_offset=place.published_offset + 1,
    )  # fmt: skip

    code, result = verify(topic)

    assert (code, result["out_of_order"]) == (1, [earlier])


def test_requeued_message_gives_up_its_place(topic):
    """It was parked while later ones of its key went out."""
    parked, later = record("a", topic=topic, parked_at="2026-01-01T00:00Z"), record("a", topic=topic, count=2)
    assert manage("relay_outbox").returncode == 0
    assert manage("requeue_outbox", *parked).returncode == 0
    record("a", "after", topic=topic)
    assert manage("relay_outbox").returncode == 0

    code, result = verify(topic)

    assert (code, result["found"], result["out_of_order"]) == (0, 4, [])
    Outbox.objects.filter(pk__in=parked).update(requeued_at=None)
    assert verify(topic)[1]["out_of_order"] == parked
    assert later


def test_each_changed_part_of_a_message_is_found(topic, published):
    for message, change in zip(published, [{"key": "c"}, {"headers": {"h": "u"}}, {"headers": {}}], strict=False):
        Outbox.objects.filter(pk=message).update(**change)

    code, result = verify(topic)

    assert (code, result["differing"], result["found"]) == (1, published[:3], 1)
    assert result["totals"] == {"missing": 0, "differing": 3, "out_of_order": 0, "foreign": 0}


def test_range_leaves_out_what_was_published_outside_of_it(topic, published):
    moved = Outbox.objects.filter(pk=published[1])
    moved.update(published_at="2026-01-01T00:00Z", payload="changed")

    outside = manage("verify_outbox", "--topic", topic, "--json", "--until", "2026-01-01T00:00Z")
    within = manage("verify_outbox", "--topic", topic, "--json", "--until", "2026-01-01T00:00:01Z")
    moved.update(payload="{}1")
    since = manage("verify_outbox", "--topic", topic, "--json", "--since", "2026-02-01T00:00Z")

    assert (outside.returncode, json.loads(outside.stdout)["published"]) == (0, 0)
    assert (within.returncode, json.loads(within.stdout)["differing"]) == (1, [published[1]])
    # It stands between the others in the topic, but it is known: a repetition, nothing foreign.
    found = json.loads(since.stdout)
    assert (since.returncode, found["published"], found["found"], found["duplicates"]) == (0, 3, 3, 1)


def test_more_than_a_page_with_repetitions_before_their_place(topic):
    """As after the death of a relay that could not mark any more what it had published."""
    rows = [Outbox(event_type="t", aggregate_id="0" * 32, topic=topic, key=str(n), payload="{}") for n in range(1_200)]
    Outbox.objects.bulk_create(rows)
    assert manage("relay_outbox").returncode == 0
    Outbox.objects.filter(key__lt="5").update(published_at=None, published_offset=None)
    again = Outbox.objects.pending().count()
    assert manage("relay_outbox").returncode == 0

    code, result = verify(topic)

    assert (code, result["found"], result["foreign"]) == (0, 1_200, [])
    assert again - 100 < result["duplicates"] <= again  # those before the first place in use are not looked at


def test_bad_arguments_and_an_absent_broker():
    assert manage("verify_outbox", "--since", "yesterday").returncode == 2
    assert manage("verify_outbox", "--since", "2026-01-01").returncode == 2
    assert manage("verify_outbox", KAFKA_BOOTSTRAP_SERVERS="").returncode == 2
