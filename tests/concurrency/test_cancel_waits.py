"""A cancel that finds its row locked by a running cycle, on real connections."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.test import Client

from promotion import cancellation
from promotion.models import PromotionPurchase
from tests.factories import PurchaseFactory
from tests.tokens import SETTINGS, token

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _configured(settings):
    for name, value in SETTINGS.items():
        setattr(settings, name, value)


def send(purchase):
    try:
        return Client().post(
            f"/promotions/{purchase.pk}/cancel",
            headers={"Authorization": f"Bearer {token(purchase.tenant_id)}"},
            secure=True,
        )
    finally:
        connection.close()


def wait_until_somebody_waits_for_a_lock():
    with connection.cursor() as cursor:
        for _ in range(500):
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits")


def test_the_expiry_that_commits_first_wins():
    purchase = PurchaseFactory()
    with ThreadPoolExecutor() as pool:
        with transaction.atomic():
            PromotionPurchase.objects.filter(pk=purchase.pk).update(status="Expired", version=2)
            answer = pool.submit(send, purchase)
            wait_until_somebody_waits_for_a_lock()
        assert answer.result().status_code == 409
    assert PromotionPurchase.objects.values_list("status", "version").get() == ("Expired", 2)


def test_503_when_the_row_stays_locked(monkeypatch):
    monkeypatch.setattr(cancellation, "LOCK_SECONDS", 0.2)
    purchase = PurchaseFactory()
    with ThreadPoolExecutor() as pool, transaction.atomic():
        PromotionPurchase.objects.select_for_update().get()
        response = pool.submit(send, purchase).result()
        assert response.status_code == 503
        assert int(response["Retry-After"]) > 0
    assert PromotionPurchase.objects.get().status == "Active"


def test_another_companys_locked_row_is_not_waited_for():
    """The answer, and the time it takes, tell nothing of other companies' purchases."""
    purchase = PurchaseFactory()
    stranger = PurchaseFactory.build(pk=purchase.pk, targets=0)
    with ThreadPoolExecutor() as pool, transaction.atomic():
        PromotionPurchase.objects.select_for_update().get()
        started = time.monotonic()
        assert pool.submit(send, stranger).result().status_code == 404
        assert time.monotonic() - started < cancellation.LOCK_SECONDS
