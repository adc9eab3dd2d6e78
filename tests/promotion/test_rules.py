"""The purchase's own rules, in memory: one guard for the worker, the endpoint and the admin."""

from datetime import timedelta

import pytest

from promotion.models import InvalidTransition, PromotionPurchase
from tests.factories import NOW, PurchaseFactory

BOTH = [PromotionPurchase.expire, PromotionPurchase.cancel]


def state(purchase):
    return {name: value for name, value in vars(purchase).items() if not name.startswith("_")}


@pytest.mark.parametrize("change", BOTH)
@pytest.mark.parametrize("status", ["Expired", "Cancelled"])
def test_nothing_leaves_a_terminal_status(change, status):
    purchase = PurchaseFactory.build(status=status)
    before = state(purchase)
    with pytest.raises(InvalidTransition, match=status):
        change(purchase, at=NOW)
    assert state(purchase) == before


@pytest.mark.parametrize("status", ["Pending", "Nonsense"])
def test_only_an_active_purchase_expires(status):
    purchase = PurchaseFactory.build(status=status)
    with pytest.raises(InvalidTransition, match="only an Active purchase expires"):
        purchase.expire(at=NOW)
    assert (purchase.status, purchase.version) == (status, 1)


def test_does_not_expire_a_microsecond_early():
    purchase = PurchaseFactory.build(ends_at=NOW + timedelta(microseconds=1))
    with pytest.raises(InvalidTransition, match="not due yet"):
        purchase.expire(at=NOW)
    assert (purchase.status, purchase.version) == ("Active", 1)


def test_expires_at_the_very_moment():
    purchase = PurchaseFactory.build(ends_at=NOW, version=4)
    before = state(purchase)
    purchase.expire(at=NOW)
    assert state(purchase) == before | {"status": "Expired", "updated_at": NOW, "version": 5}


@pytest.mark.parametrize("status", ["Pending", "Active"])
def test_cancels_whatever_has_not_ended(status):
    purchase = PurchaseFactory.build(status=status, not_due=True)
    before = state(purchase)
    purchase.cancel(at=NOW)
    assert state(purchase) == before | {"status": "Cancelled", "updated_at": NOW, "version": 2}
