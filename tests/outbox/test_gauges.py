"""The outbox as gauges: by topic, from the start."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from outbox import gauges
from outbox.models import Outbox
from promotion.events import TOPIC

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db


def message(topic: str = TOPIC, *, recorded_ago: timedelta = timedelta(0), **state: object) -> None:
    aggregate = uuid.uuid4()
    Outbox.objects.create(
        event_type="PromotionPurchaseChanged",
        aggregate_id=aggregate,
        topic=topic,
        key=str(aggregate),
        payload="{}",
        created_at=NOW - recorded_ago,
        **state,
    )


def read() -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels["topic"]): sample.value for metric in gauges.read(NOW) for sample in metric.samples
    }


def test_topic_of_the_product_is_there_from_the_start():
    message(recorded_ago=timedelta(hours=1), published_at=NOW)

    assert read() == {
        ("outbox_pending_messages", TOPIC): 0,
        ("outbox_oldest_pending_age_seconds", TOPIC): 0,
        ("outbox_parked_messages", TOPIC): 0,
    }


def test_pending_and_parked_messages_are_counted_by_topic():
    message(recorded_ago=timedelta(hours=3), published_at=NOW)
    message(recorded_ago=timedelta(hours=2), parked_at=NOW)
    message(recorded_ago=timedelta(seconds=5))
    message(recorded_ago=timedelta(seconds=70), next_attempt_at=NOW + timedelta(seconds=9))
    message("another.topic", recorded_ago=timedelta(seconds=1))

    assert read() == {
        ("outbox_pending_messages", TOPIC): 2,
        ("outbox_oldest_pending_age_seconds", TOPIC): 70,
        ("outbox_parked_messages", TOPIC): 1,
        ("outbox_pending_messages", "another.topic"): 1,
        ("outbox_oldest_pending_age_seconds", "another.topic"): 1,
        ("outbox_parked_messages", "another.topic"): 0,
    }


def test_cost_is_two_queries(django_assert_num_queries):
    with django_assert_num_queries(2):
        read()
