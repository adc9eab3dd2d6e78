"""The purchases as gauges: what counts as backlog, late and stuck."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from promotion import gauges
from promotion.models import ExpirationFailure, PromotionPurchase

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
Status = PromotionPurchase.Status

pytestmark = pytest.mark.django_db


def purchase(status: str, *, ended_ago: timedelta) -> PromotionPurchase:
    return PromotionPurchase.objects.create(
        tenant_id=uuid.uuid4(),
        package_kind="Boost",
        status=status,
        starts_at=NOW - timedelta(days=30),
        ends_at=NOW - ended_ago,
    )


def stuck(purchase: PromotionPurchase) -> None:
    ExpirationFailure.objects.remember({purchase.pk: "no targets"}, at=NOW)


def read() -> dict[str, float]:
    return {sample.name: sample.value for metric in gauges.read(NOW) for sample in metric.samples}


def test_all_gauges_are_zero_without_anything_due():
    for status in (Status.PENDING, Status.EXPIRED, Status.CANCELLED):
        purchase(status, ended_ago=timedelta(hours=9))
    purchase(Status.ACTIVE, ended_ago=-timedelta(microseconds=1))

    assert read() == {
        "promotion_expire_backlog": 0,
        "promotion_expire_oldest_due_age_seconds": 0,
        "promotion_expire_lateness_seconds": 0,
        "promotion_expire_stuck_purchases": 0,
    }


def test_lateness_leaves_stuck_purchases_out():
    purchase(Status.EXPIRED, ended_ago=timedelta(hours=9))
    purchase(Status.ACTIVE, ended_ago=-timedelta(hours=9))
    purchase(Status.ACTIVE, ended_ago=timedelta(seconds=90))
    purchase(Status.ACTIVE, ended_ago=timedelta(seconds=30))
    stuck(purchase(Status.ACTIVE, ended_ago=timedelta(hours=2)))

    assert read() == {
        "promotion_expire_backlog": 3,
        "promotion_expire_oldest_due_age_seconds": 7200,
        "promotion_expire_lateness_seconds": 90,
        "promotion_expire_stuck_purchases": 1,
    }


def test_stuck_purchase_that_was_cancelled_or_prolonged_is_not_counted():
    stuck(purchase(Status.CANCELLED, ended_ago=timedelta(hours=2)))
    stuck(purchase(Status.ACTIVE, ended_ago=-timedelta(hours=2)))

    assert read()["promotion_expire_stuck_purchases"] == 0


def test_cost_is_three_queries(django_assert_num_queries):
    with django_assert_num_queries(3):
        read()
