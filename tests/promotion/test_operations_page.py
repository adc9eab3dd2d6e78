"""The admin's first page: how things stand, each number leading to the rows behind it."""

import re
import uuid
from datetime import timedelta

import pytest
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from outbox.models import Outbox
from promotion import overview
from promotion.models import ExpirationFailure, ExpirationRun
from tests.factories import PurchaseFactory
from tests.operators import Person

pytestmark = pytest.mark.django_db
PAGE = reverse("admin:index")
TOPIC = "pin.promotion.purchase-changed.v1"


def tiles(response):
    """Colour, number and remark by label, and the rows behind each."""
    pattern = (
        r'<a class="tile (\w+)" href="([^"]+)">\s*<span class="label">([^<]+)</span><strong>([^<]+)</strong>'
        r"\s*<span>([^<]+)</span>"
    )
    return {
        label: ((kind, number, remark), href)
        for kind, href, label, number, remark in re.findall(pattern, response.text)
    }


def make_run(ended, instance="worker-1:1", **values):
    counts = {"expired": 0, "failed": 0, "skipped_locked": 0, "duration_ms": 12.3, "lateness_seconds": 0} | values
    return ExpirationRun.objects.create(
        run_id=uuid.uuid4(), instance=instance, as_of=ended, finished_at=ended, **counts
    )


def make_message(**values):
    return Outbox.objects.create(
        **{"event_type": "X", "aggregate_id": uuid.uuid4(), "topic": TOPIC, "key": "k", "payload": "{}"} | values
    )


@pytest.fixture
def viewer():
    return Person("Viewer")


def test_nothing_to_worry_about(viewer):
    PurchaseFactory(ends_at=timezone.now() + timedelta(hours=1))
    make_run(timezone.now())
    found = {label: tile for label, (tile, _href) in tiles(viewer.get(PAGE)).items()}
    assert found == {
        "Overdue purchases": ("ok", "0", "nothing is due"),
        "Stuck purchases": ("ok", "0", "none"),
        "Pending messages": ("ok", "0", "all published"),
        "Parked messages": ("ok", "0", "none"),
        "Last cycle": ("ok", "0 s ago", "1 instance in the last hour"),
    }


def test_everything_is_wrong_and_each_number_leads_to_its_rows(viewer):
    now = timezone.now()
    stuck = PurchaseFactory(ends_at=now - timedelta(hours=2), targets=0)
    PurchaseFactory(ends_at=now - timedelta(hours=1))
    ExpirationFailure.objects.remember({stuck.pk: "the purchase has no targets"}, at=now - timedelta(minutes=5))
    ExpirationFailure.objects.remember({PurchaseFactory(expired=True).pk: "settled"}, at=now)
    make_message(created_at=now - timedelta(minutes=30))
    make_message(parked_at=now, skipped_at=now)
    make_message(parked_at=now)
    make_run(now - timedelta(minutes=10))
    response = viewer.get(PAGE)
    found = tiles(response)
    assert {label: tile for label, (tile, _href) in found.items()} == {
        "Overdue purchases": ("bad", "2", "oldest 2 h"),
        "Stuck purchases": ("bad", "1", "need a person"),
        "Pending messages": ("bad", "1", "oldest 30 min"),
        "Parked messages": ("bad", "1", "need a person"),
        "Last cycle": ("bad", "10 min ago", "1 instance in the last hour"),
    }
    behind = {label: viewer.get(href).context["cl"].result_count for label, (_tile, href) in found.items()}
    assert list(behind.values()) == [2, 2, 1, 1, 1]  # a settled failure stays listed until the next cycle
    assert "the purchase has no targets" in response.text


def test_no_cycle_ever(viewer):
    response = viewer.get(PAGE)
    assert tiles(response)["Last cycle"][0][:2] == ("bad", "never")
    assert "expire_promotions --loop" in response.text


def test_cycles_and_instances(viewer):
    now = timezone.now()
    make_run(now - timedelta(hours=2), instance="gone:1", expired=7)
    make_run(now - timedelta(minutes=2), instance="worker-1:1", expired=30, failed=2)
    make_run(now - timedelta(minutes=1), instance="worker-1:1", expired=4, duration_ms=1234.5)
    text = viewer.get(PAGE).text
    assert '<span class="badge bad">2</span>' in text
    assert [(row["instance"], row["cycles"], row["expired"]) for row in overview.instances(now)] == [
        ("worker-1:1", 2, 34)
    ]
    assert "1,234" in text or "1,235" in text


def test_charts_count_by_hour():
    now = timezone.now().replace(minute=30, second=0, microsecond=0)
    for ends_at in (now - timedelta(minutes=1), now + timedelta(hours=24)):
        PurchaseFactory(ends_at=ends_at)
    PurchaseFactory(ends_at=now + timedelta(minutes=5), pending=True)
    for hours in (0, 0, 3):
        PurchaseFactory(ends_at=now + timedelta(hours=hours, minutes=1))
    assert [(hour, count) for hour, count in enumerate(overview.ending(now)) if count] == [(0, 2), (3, 1)]

    make_run(now - timedelta(hours=24), expired=99)
    make_run(now, expired=5, lateness_seconds=61, failed=1)
    make_run(now - timedelta(minutes=1), expired=6, lateness_seconds=30, failed=3)
    make_run(now - timedelta(hours=23), expired=2)
    past = overview.expired(now)
    assert (past["count"][0], past["count"][-1], sum(past["count"])) == (2, 11, 13)
    assert (past["late"][-1], past["worst"][-1]) == (61, 3)


def test_no_script_style_or_address_outside_the_policy(viewer):
    make_run(timezone.now(), expired=3)
    text = viewer.get(PAGE).text
    assert not re.search(r"<script(?![^>]*src=)(?![^>]*application/json)|\sstyle=|\son\w+=", text)
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", text)


def test_queries_are_few_whatever_there_is(viewer, django_assert_max_num_queries):
    now = timezone.now()
    for minutes in range(20):
        purchase = PurchaseFactory(ends_at=now - timedelta(minutes=minutes), targets=0)
        ExpirationFailure.objects.remember({purchase.pk: "x"}, at=now)
        make_run(now - timedelta(minutes=minutes), instance=f"w:{minutes}")
        make_message(topic=f"t{minutes}")
    with django_assert_max_num_queries(16):
        assert viewer.get(PAGE).status_code == 200


@pytest.mark.parametrize("role", [None])
def test_who_may_not_see_purchases_sees_no_numbers(role):
    response = Person(role).get(PAGE)
    assert (response.status_code, tiles(response)) == (200, {})


@override_settings(EXPIRE_PROMOTIONS_INTERVAL=300)
def test_late_means_more_than_two_intervals(viewer):
    make_run(timezone.now() - timedelta(minutes=9))
    PurchaseFactory(ends_at=timezone.now() - timedelta(minutes=9))
    found = tiles(viewer.get(PAGE))
    assert (found["Last cycle"][0][0], found["Overdue purchases"][0][0]) == ("ok", "warn")
