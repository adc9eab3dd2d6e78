"""The use case behind the endpoint and the admin's action."""

import json
import uuid
from datetime import timedelta

import pytest
from django.db import connection

from outbox.models import Outbox
from pinpromo.isolation import Refused
from promotion.cancellation import StaleVersion, cancel
from promotion.models import ExpirationFailure, InvalidTransition, PromotionPurchase
from tests.factories import NOW, PurchaseFactory, TargetFactory
from tests.readings import row

pytestmark = pytest.mark.django_db
RUN = uuid.UUID(int=7)


def do_cancel(purchase, **changes):
    arguments = {"tenant_id": purchase.tenant_id, "at": NOW, "correlation_id": RUN}
    return cancel(purchase.pk, **arguments | changes)


def test_changes_this_purchase_alone_and_records_one_event():
    other = PurchaseFactory()
    purchase = PurchaseFactory(ends_at=NOW + timedelta(days=3), version=4)
    before, other_before = row(purchase), row(other)

    cancellation = do_cancel(purchase)

    assert row(other) == other_before
    assert row(purchase) == before | {"status": "Cancelled", "updated_at": NOW, "version": 5}
    message = Outbox.objects.get()
    assert (message.event_id, message.key) == (cancellation.message.event_id, str(purchase.pk))
    event = json.loads(message.payload)
    assert (event["status"], event["version"], event["correlationId"]) == ("Cancelled", 5, str(RUN))
    assert event["occurredAt"] == "2026-01-15T12:00:00.000000Z"
    assert len(event["targets"]) == 1


def test_a_pending_purchase_can_be_cancelled():
    purchase = PurchaseFactory(status="Pending")
    do_cancel(purchase)
    assert row(purchase)["status"] == "Cancelled"


@pytest.mark.parametrize("status", ["Expired", "Cancelled"])
def test_a_terminal_purchase_stays_as_it_is(status):
    purchase = PurchaseFactory(status=status)
    before = row(purchase)
    with pytest.raises(InvalidTransition, match=f"already {status}"):
        do_cancel(purchase)
    assert row(purchase) == before
    assert not Outbox.objects.exists()


def test_a_stale_version_changes_nothing():
    purchase = PurchaseFactory(version=3)
    before = row(purchase)
    with pytest.raises(StaleVersion):
        do_cancel(purchase, expected_versions=[2])
    assert row(purchase) == before
    assert not Outbox.objects.exists()
    do_cancel(purchase, expected_versions=[3])
    assert row(purchase)["version"] == 4


def test_another_companys_purchase_does_not_exist():
    purchase = PurchaseFactory()
    before = row(purchase)
    with pytest.raises(PromotionPurchase.DoesNotExist):
        do_cancel(purchase, tenant_id=uuid.uuid4())
    assert row(purchase) == before
    do_cancel(purchase, tenant_id=None)
    assert row(purchase)["status"] == "Cancelled"


@pytest.mark.parametrize(
    ("poison", "targets"),
    [({"targets": 0}, 0), ({"package_kind": "Mystery"}, 1), ({"targets__target_type": "Star"}, 1)],
)
def test_poison_can_be_cancelled_and_is_no_longer_stuck(poison, targets):
    purchase = PurchaseFactory(**poison)
    ExpirationFailure.objects.remember({purchase.pk: "poison", PurchaseFactory().pk: "another"}, at=NOW)

    do_cancel(purchase)

    assert row(purchase)["status"] == "Cancelled"
    assert len(json.loads(Outbox.objects.get().payload)["targets"]) == targets
    assert list(ExpirationFailure.objects.values_list("reason", flat=True)) == ["another"]


def test_a_purchase_with_more_than_fits_is_told_of_without_targets():
    purchase = PurchaseFactory()
    TargetFactory(purchase=purchase, target_type="x" * 1_000_000)
    assert len(do_cancel(purchase).targets) == 2
    assert json.loads(Outbox.objects.get().payload)["targets"] == []


def test_the_audit_stands_or_falls_with_the_change():
    purchase = PurchaseFactory()
    before = row(purchase)

    def fail(_cancellation):
        raise RuntimeError("no audit, no change")

    with pytest.raises(RuntimeError):
        do_cancel(purchase, audit=fail)
    assert row(purchase) == before
    assert not Outbox.objects.exists()


def test_a_change_that_a_trigger_swallows_is_not_told_of():
    purchase = PurchaseFactory()
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION pg_temp.swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
            "CREATE TRIGGER swallow BEFORE UPDATE ON promotion.promotion_purchases"
            " FOR EACH ROW EXECUTE FUNCTION pg_temp.swallow()"
        )
    with pytest.raises(Refused):
        do_cancel(purchase)
    assert not Outbox.objects.exists()
