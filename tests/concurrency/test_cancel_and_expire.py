"""Cancel and expire on the same row, in every order: whoever commits first wins, the other re-reads (R-13, R-64)."""

import random
import threading
import time
import uuid

import pytest
from django.db import IntegrityError

from promotion.cancellation import cancel
from promotion.expiration import run_cycle
from promotion.models import InvalidTransition, PromotionPurchase
from tests.concurrency.workers import Threads
from tests.factories import NOW, PurchaseFactory
from tests.gates import EVENTS_WRITTEN, PURCHASES_WRITTEN, Gate, session
from tests.readings import events, row, rows, statuses

pytestmark = pytest.mark.django_db(transaction=True)


def cycle(**changes):
    return run_cycle(**{"as_of": NOW, "batch_size": 200, "budget": 30.0} | changes)


def do_cancel(purchase):
    try:
        cancel(purchase.pk, tenant_id=purchase.tenant_id, at=NOW, correlation_id=uuid.uuid4())
    except InvalidTransition:
        return "refused"
    return "cancelled"


def assert_ended_once(*purchases):
    for purchase in purchases:
        (event,) = events(purchase)
        values = row(purchase)
        assert (event["status"], event["version"]) == (values["status"], values["version"])
        assert values["version"] == 2


def test_cancelled_before_the_tick():
    purchase = PurchaseFactory()
    assert do_cancel(purchase) == "cancelled"
    assert cycle().selected == 0
    assert_ended_once(purchase)
    assert statuses([purchase]) == ["Cancelled"]


def test_expired_before_the_cancel():
    purchase = PurchaseFactory()
    assert cycle().expired == 1
    assert do_cancel(purchase) == "refused"
    assert_ended_once(purchase)


@pytest.mark.parametrize("statement", [PURCHASES_WRITTEN, EVENTS_WRITTEN])
def test_the_cycle_passes_over_a_cancel_in_flight(statement):
    purchase = PurchaseFactory()
    with Gate(*statement) as gate, Threads(1) as threads:
        cancelling = threads.submit(do_cancel, purchase)
        gate.wait_for()
        result = cycle()
        assert (result.selected, result.skipped_locked) == (0, 1)
        gate.open()
        assert cancelling.result() == "cancelled"
    assert cycle().selected == 0
    assert_ended_once(purchase)


@pytest.mark.parametrize("statement", [PURCHASES_WRITTEN, EVENTS_WRITTEN])
def test_a_cancel_waits_for_the_cycle_in_flight_and_re_reads(statement):
    purchase = PurchaseFactory()
    with Gate(*statement) as gate, Threads(2) as threads:
        expiring = threads.submit(cycle)
        gate.wait_for()
        cancelling = threads.submit(do_cancel, purchase)
        time.sleep(0.2)
        assert not cancelling.done()
        gate.open()
        assert expiring.result().expired == 1
        assert cancelling.result() == "refused"
    assert_ended_once(purchase)
    assert statuses([purchase]) == ["Expired"]


def test_a_cancel_that_is_rolled_back_leaves_the_purchase_to_the_next_cycle():
    purchase = PurchaseFactory()
    with session() as other:
        other.execute("UPDATE promotion.promotion_purchases SET status = 'Cancelled' WHERE id = %s", [purchase.pk])
        assert cycle().skipped_locked == 1
        other.rollback()
    assert cycle().expired == 1
    assert_ended_once(purchase)


def test_a_writer_that_takes_no_lock_first_is_refused_by_the_database():
    """Between the cycle's read and its write, plain SQL waits for the row; then INV-6 stops it."""
    purchase = PurchaseFactory()

    def plain_cancel():
        with session() as other:
            other.execute("UPDATE promotion.promotion_purchases SET status = 'Cancelled' WHERE id = %s", [purchase.pk])

    with Gate(*PURCHASES_WRITTEN) as gate, Threads(2) as threads:
        expiring = threads.submit(cycle)
        gate.wait_for()
        cancelling = threads.submit(plain_cancel)
        gate.open()
        assert expiring.result().expired == 1
        with pytest.raises(Exception, match="INV-6"):
            cancelling.result()
    assert_ended_once(purchase)


@pytest.mark.parametrize("end", [lambda _purchase: cycle(), do_cancel], ids=["expired", "cancelled"])
def test_a_full_save_of_a_stale_copy_resurrects_nobody(end):
    stale = PurchaseFactory()
    end(stale)
    before = row(stale)
    with pytest.raises(IntegrityError, match="INV-6"):
        stale.save()
    assert row(stale) == before


@pytest.mark.parametrize("end", [lambda _purchase: cycle(), do_cancel], ids=["expired", "cancelled"])
def test_nor_does_one_that_comes_between_the_read_and_the_write(end):
    stale = PurchaseFactory()
    with Gate(*PURCHASES_WRITTEN) as gate, Threads(2) as threads:
        ending = threads.submit(end, stale)
        gate.wait_for()
        saving = threads.submit(stale.save)
        time.sleep(0.2)
        assert not saving.done()
        gate.open()
        ending.result()
        with pytest.raises(IntegrityError, match="INV-6"):
            saving.result()
    assert_ended_once(stale)


def test_both_at_once_many_times():
    purchases = PurchaseFactory.create_batch(60)
    start = threading.Barrier(3)

    def cancel_all(order):
        start.wait()
        return [do_cancel(purchase) for purchase in order]

    def expire_all():
        start.wait()
        return sum(cycle(batch_size=3).expired for _ in range(60))

    backwards = list(reversed(purchases))
    shuffled = random.sample(purchases, len(purchases))
    with Threads(3) as threads:
        expiring = threads.submit(expire_all)
        cancelling = [threads.submit(cancel_all, order) for order in (backwards, shuffled)]
        expired = expiring.result()
        cancelled = sum(future.result().count("cancelled") for future in cancelling)
    expired += cycle().expired
    assert expired + cancelled == 60
    assert_ended_once(*purchases)


def test_a_bulk_cancel_in_reverse_order_does_not_deadlock_with_the_worker():
    purchases = sorted(PurchaseFactory.create_batch(200), key=lambda purchase: purchase.pk, reverse=True)

    def cancel_all():
        with session() as other:
            for purchase in purchases:
                other.execute(
                    "UPDATE promotion.promotion_purchases SET status = 'Cancelled', version = version + 1"
                    " WHERE id = %s AND status = 'Active'",
                    [purchase.pk],
                )

    with Threads(2) as threads:
        cancelling = threads.submit(cancel_all)
        expired = threads.submit(lambda: sum(cycle(batch_size=20).expired for _ in range(30))).result()
        cancelling.result()
    found = [values["status"] for values in rows().values()]
    assert found.count("Expired") == expired == len(events())
    assert found.count("Expired") + found.count("Cancelled") == 200
    assert {values["version"] for values in rows().values()} == {2}


ADD_TARGET = """
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
VALUES (%s, 'NewsPost', gen_random_uuid())
"""


def test_an_uncommitted_target_holds_up_neither_side():
    """The foreign key is checked at the commit: the event tells of the targets that were committed by then."""
    purchase = PurchaseFactory()
    with session() as other:
        other.execute(ADD_TARGET, [purchase.pk])
        assert cycle().expired == 1
    assert_ended_once(purchase)
    assert len(events(purchase)[0]["targets"]) == 1


def test_a_target_whose_purchase_is_locked_for_it_goes_into_the_event():
    purchase = PurchaseFactory()
    with session() as other:
        other.execute("SET CONSTRAINTS ALL IMMEDIATE")
        other.execute(ADD_TARGET, [purchase.pk])
        assert cycle().skipped_locked == 1
    assert cycle().expired == 1
    (event,) = events(purchase)
    assert [target["targetType"] for target in event["targets"]] == ["CatalogItem", "NewsPost"]


def test_a_target_added_while_its_purchase_is_expired_waits_for_the_commit_alone():
    purchase = PurchaseFactory()

    def add_target():
        with session() as other:
            other.execute(ADD_TARGET, [purchase.pk])

    with Gate(*EVENTS_WRITTEN) as gate, Threads(2) as threads:
        expiring = threads.submit(cycle)
        gate.wait_for()
        adding = threads.submit(add_target)
        gate.open()
        assert expiring.result().expired == 1
        adding.result(timeout=10)
    assert PromotionPurchase.objects.get().targets.count() == 2
    assert len(events(purchase)[0]["targets"]) == 1
