"""The cycle when all goes well: what is selected, what changes, what is recorded."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from pinpromo.isolation import Refused
from promotion.claiming import expiring
from promotion.expiration import run_cycle
from promotion.models import PromotionPurchase
from tests.factories import NOW, PurchaseFactory, TargetFactory
from tests.readings import events, messages, row, rows, statuses
from tests.round_trips import round_trips

pytestmark = pytest.mark.django_db


def cycle(**changes):
    return run_cycle(**{"as_of": NOW, "batch_size": 200, "budget": 30.0} | changes)


def test_leaves_alone_whatever_is_not_due():
    PurchaseFactory(not_due=True)
    PurchaseFactory(pending=True)
    PurchaseFactory(expired=True)
    PurchaseFactory(cancelled=True)
    before = rows()
    result = cycle()
    assert rows() == before
    assert messages() == []
    assert (result.selected, result.expired, result.failed, result.skipped_locked) == (0, 0, 0, 0)


def test_expires_what_ends_at_this_very_moment_and_nothing_else_of_it():
    purchase = PurchaseFactory(ends_at=NOW, version=7, created_at=NOW - timedelta(days=40))
    before = row(purchase)
    result = cycle()
    assert row(purchase) == before | {"status": "Expired", "updated_at": NOW, "version": 8}
    assert (result.selected, result.expired, result.failed, result.skipped_locked) == (1, 1, 0, 0)
    assert result.as_of == NOW
    assert result.duration_ms > 0


def test_records_one_event_with_the_snapshot():
    purchase = PurchaseFactory(package_kind="Highlight", payment_status="Refunded", version=3, targets=0)
    targets = [TargetFactory(purchase=purchase, target_type=kind) for kind in ("NewsPost", "CatalogItem", "NewsPost")]
    result = cycle()
    (message,) = messages()
    (event,) = events()
    assert event == {
        "eventId": str(message.event_id),
        "occurredAt": "2026-01-15T12:00:00.000000Z",
        "correlationId": str(result.run_id),
        "purchaseId": str(purchase.pk),
        "tenantId": str(purchase.tenant_id),
        "status": "Expired",
        "packageKind": "Highlight",
        "paymentStatus": "Refunded",
        "startsAt": "2025-12-16T12:00:00.000000Z",
        "endsAt": "2026-01-15T11:55:00.000000Z",
        "version": 4,
        "targets": [{"targetType": each.target_type, "targetId": str(each.target_id)} for each in targets],
    }
    assert (message.topic, message.key) == ("pin.promotion.purchase-changed.v1", str(purchase.pk))
    assert (message.event_type, message.aggregate_id) == ("PromotionPurchaseChanged", purchase.pk)
    assert message.headers["ce_correlationid"] == str(result.run_id)
    assert (message.published_at, message.parked_at, message.attempts) == (None, None, 0)


def test_the_change_and_its_event_are_one_transaction():
    PurchaseFactory()
    cycle()
    with connection.cursor() as cursor:
        cursor.execute("SELECT xmin FROM promotion.promotion_purchases UNION SELECT xmin FROM promotion.outbox")
        assert len(cursor.fetchall()) == 1


def test_takes_the_oldest_first_and_no_more_than_a_batch():
    ages = [3, 1, 4, 2, 5]
    purchases = [PurchaseFactory(ends_at=NOW - timedelta(hours=age)) for age in ages]
    assert cycle(batch_size=3).expired == 3
    assert statuses(purchases) == ["Expired", "Active", "Expired", "Active", "Expired"]
    oldest_first = [purchases[ages.index(age)] for age in (5, 4, 3)]
    assert {event["purchaseId"] for event in events()} == {str(purchase.pk) for purchase in oldest_first}
    assert cycle(batch_size=3).expired == 2
    assert statuses(purchases) == ["Expired"] * 5


def test_breaks_ties_by_id():
    purchases = [PurchaseFactory(id=uuid.UUID(int=number)) for number in (3, 1, 2)]
    cycle(batch_size=2)
    assert statuses(purchases) == ["Active", "Expired", "Expired"]


@pytest.mark.parametrize("payment_status", PromotionPurchase.PaymentStatus.values)
def test_expires_in_every_payment_status(payment_status):
    purchase = PurchaseFactory(payment_status=payment_status)
    assert cycle().expired == 1
    assert row(purchase)["payment_status"] == payment_status


def test_serves_every_company():
    purchases = PurchaseFactory.create_batch(5)
    assert len({purchase.tenant_id for purchase in purchases}) == 5
    assert cycle().expired == 5


def test_running_again_changes_nothing():
    PurchaseFactory.create_batch(3)
    first = cycle()
    before, recorded = rows(), events()
    second = cycle()
    assert (first.expired, second.selected) == (3, 0)
    assert (rows(), events()) == (before, recorded)
    assert first.run_id != second.run_id


def test_an_event_holds_no_more_than_the_contract():
    PurchaseFactory()
    cycle()
    fields = "eventId occurredAt correlationId purchaseId tenantId status packageKind paymentStatus startsAt endsAt"
    assert list(events()[0]) == [*fields.split(), "version", "targets"]


def test_nothing_expires_early_by_a_wrong_clock():
    """An instance ahead of the database takes the database's time (R-26's other side)."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    not_yet = PurchaseFactory(ends_at=ahead - timedelta(minutes=30))
    result = cycle(as_of=ahead)
    assert statuses([not_yet]) == ["Active"]
    assert result.as_of < ahead - timedelta(minutes=59)


@pytest.mark.parametrize("number", [1, 20])
def test_asks_the_database_the_same_number_of_times_whatever_the_batch(number):
    PurchaseFactory.create_batch(number, targets=2)
    with round_trips() as asked:
        assert cycle().expired == number
    assert len(asked) == 13


def test_an_empty_cycle_asks_once():
    PurchaseFactory(not_due=True)
    with round_trips() as asked:
        assert cycle().expired == 0
    assert len(asked) == 1


def test_the_write_itself_passes_over_whatever_is_not_active():
    """The last word, should a lock one day be missing."""
    others = [PurchaseFactory(pending=True), PurchaseFactory(cancelled=True), PurchaseFactory(expired=True)]
    before = rows()
    with pytest.raises(Refused), expiring([purchase.pk for purchase in others], at=NOW):
        pass
    assert rows() == before
