"""Poison of every kind: left out, logged, remembered, tried again; never in front of healthy purchases."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from structlog.testing import capture_logs

from promotion.expiration import run_cycle
from promotion.models import ExpirationFailure, PromotionPurchase
from tests import poison
from tests.factories import NOW, PurchaseFactory, TargetFactory
from tests.readings import events, messages, row, rows, statuses

pytestmark = pytest.mark.django_db
UPDATES_LEAVE_A_TRACE = """
CREATE SEQUENCE public.test_updates;
CREATE FUNCTION public.test_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('public.test_updates');
    RETURN NULL;
END $$;
CREATE TRIGGER test_update BEFORE UPDATE ON promotion.promotion_purchases FOR EACH STATEMENT
EXECUTE FUNCTION public.test_update()
"""  # a sequence goes on, whatever is rolled back
LONG_AGO = NOW - timedelta(days=9)


def cycle(**changes):
    return run_cycle(**{"as_of": NOW, "batch_size": 200, "budget": 30.0} | changes)


@pytest.mark.parametrize("kind", poison.KINDS)
def test_is_left_out_while_the_rest_commits(kind):
    poisoned = poison.create(kind, 2)
    before = rows(*poisoned)
    healthy = PurchaseFactory.create_batch(3)

    with capture_logs() as logs:
        result = cycle()

    assert rows(*poisoned) == before
    assert [messages(purchase) for purchase in poisoned] == [[], []]
    assert statuses(healthy) == ["Expired"] * 3
    assert (result.selected, result.expired, result.failed) == (5, 3, 2)
    failed = [line for line in logs if line["event"] == "item_failed"]
    assert {line["purchase_id"] for line in failed} == {str(purchase.pk) for purchase in poisoned}
    assert {line["log_level"] for line in failed} == {"error"}


@pytest.mark.parametrize("healthy", [0, 3])
@pytest.mark.parametrize("kind", poison.KINDS)
def test_the_log_tells_of_the_expired_alone(kind, healthy, capfd):
    """Its lines are made before it is known what the database refuses."""
    poison.create(kind, 2)
    expired = PurchaseFactory.create_batch(healthy)
    cycle()
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    told = [line["purchase_id"] for line in lines if line["event"] == "promotion_expired"]
    assert sorted(told) == sorted(str(purchase.pk) for purchase in expired)


@pytest.fixture
def too_large(monkeypatch):
    """Two purchases whose events turn out to be too large when they are built."""
    monkeypatch.setattr("outbox.recording.MAX_BYTES", 2_000)
    return PurchaseFactory.create_batch(2, targets=30)


@pytest.mark.parametrize("kind", ["row refused", "row swallowed", "event refused"])
def test_what_fails_when_its_event_is_built_beside_what_the_database_refuses(kind, too_large):
    refused = poison.create(kind, 2)
    healthy = PurchaseFactory.create_batch(3)
    result = cycle()
    assert (result.expired, result.failed) == (3, 4)
    assert statuses(healthy) == ["Expired"] * 3
    reasons = {failure.purchase_id: failure.reason for failure in ExpirationFailure.objects.all()}
    assert set(reasons) == {purchase.pk for purchase in [*too_large, *refused]}
    assert all(reasons[purchase.pk].startswith("UnfitMessage: the message has") for purchase in too_large)
    assert not any("Unfit" in reasons[purchase.pk] for purchase in refused)


def test_what_failed_before_is_written_only_if_its_event_can_be_built(too_large):
    cycle()
    with connection.cursor() as cursor:
        cursor.execute(UPDATES_LEAVE_A_TRACE)
        assert cycle().failed == 2
        cursor.execute("SELECT is_called FROM public.test_updates")
        assert cursor.fetchone() == (False,)
    assert all(failure.reason.startswith("UnfitMessage") for failure in ExpirationFailure.objects.all())


@pytest.mark.parametrize("kind", poison.KINDS)
def test_does_not_starve_the_healthy_behind_it(kind):
    """300 of them with the oldest `ends_at`: the healthy ones expire in the very first cycle."""
    poison.create(kind, 300, ends_at=LONG_AGO)
    healthy = PurchaseFactory.create_batch(20)
    result = cycle()
    assert statuses(healthy) == ["Expired"] * 20
    assert (result.expired, result.failed) == (20, 300)
    again = cycle()
    assert (again.expired, again.failed) == (0, 300)
    assert len(events()) == 20


def test_known_poison_takes_no_place_of_a_full_batch():
    poison.create("no targets", 30, ends_at=LONG_AGO)
    cycle(batch_size=10)
    healthy = PurchaseFactory.create_batch(10)
    assert cycle(batch_size=10).expired == 10
    assert statuses(healthy) == ["Expired"] * 10


@pytest.mark.parametrize(
    ("kind", "heal"),
    [
        ("no targets", lambda purchase: TargetFactory(purchase=purchase)),
        ("unknown package kind", lambda purchase: change(purchase, package_kind="Top")),
        ("version exhausted", lambda purchase: change(purchase, version=1)),
        ("row refused", lambda _purchase: poison.heal_database()),
        ("event swallowed", lambda _purchase: poison.heal_database()),
    ],
)
def test_a_healed_purchase_expires_in_the_next_cycle(kind, heal):
    (purchase,) = poison.create(kind)
    assert (cycle().failed, cycle().failed) == (1, 1)
    heal(purchase)
    result = cycle()
    assert (result.expired, result.failed) == (1, 0)
    assert statuses([purchase]) == ["Expired"]
    assert len(messages(purchase)) == 1
    assert not ExpirationFailure.objects.exists()


def change(purchase, **fields):
    PromotionPurchase.objects.filter(pk=purchase.pk).update(**fields)


def test_operators_see_since_when_how_often_and_why_without_values():
    (purchase,) = poison.create("row refused")
    later = NOW + timedelta(minutes=1)
    cycle()
    cycle(as_of=later)
    failure = ExpirationFailure.objects.get()
    assert failure.purchase_id == purchase.pk
    assert (failure.first_failed_at, failure.last_failed_at, failure.attempts) == (NOW, later, 2)
    assert failure.reason == "CheckViolation: SQLSTATE 23514, test_hostile"


@pytest.mark.parametrize(
    "settle",
    [
        lambda purchase: change(purchase, status="Cancelled"),
        lambda purchase: change(purchase, ends_at=datetime.now(UTC) + timedelta(days=1)),
        lambda purchase: purchase.delete(),
    ],
    ids=["cancelled", "prolonged", "deleted"],
)
def test_a_stuck_purchase_that_is_no_longer_due_is_forgotten(settle):
    (purchase,) = poison.create("no targets")
    cycle()
    settle(purchase)
    assert cycle().selected == 0
    assert not ExpirationFailure.objects.exists()


def test_a_poison_purchase_never_changes_in_memory_only():
    """The version in the event is the one in the row, also when the batch was written apart."""
    poison.create("row refused")
    purchase = PurchaseFactory(version=5)
    cycle()
    assert (events(purchase)[0]["version"], row(purchase)["version"]) == (6, 6)


@pytest.mark.parametrize("kind", ["no targets", "row refused"])
def test_the_tries_take_turns_when_there_are_more_than_one_cycle_tries(kind, monkeypatch):
    monkeypatch.setattr("promotion.expiration.RETRIES", 4)
    poison.create(kind, 10)
    for minute in range(4):
        cycle(as_of=NOW + timedelta(minutes=minute), batch_size=3)
    assert sorted(ExpirationFailure.objects.values_list("attempts", flat=True)) == [2] * 8 + [3] * 2
