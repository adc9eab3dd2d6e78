"""Several instances side by side: every purchase once, with exactly one event (R-06, R-25, R-63)."""

import pytest

from promotion.expiration import run_cycle
from tests.bulk import insert_due
from tests.concurrency.workers import Threads
from tests.factories import NOW, PurchaseFactory
from tests.gates import PURCHASES_WRITTEN, Gate, session
from tests.programs import eventually
from tests.readings import events, messages, rows, statuses

pytestmark = pytest.mark.django_db(transaction=True)


def cycle(**changes):
    return run_cycle(**{"as_of": NOW, "batch_size": 200, "budget": 30.0} | changes)


def drain():
    result = cycle(batch_size=50)
    total = result.expired
    while result.expired or result.skipped_locked:
        result = cycle(batch_size=50)
        total += result.expired
    return total


def test_four_workers_1200_purchases_one_event_each():
    insert_due(1200)
    with Threads(4) as threads:
        totals = [future.result() for future in [threads.submit(drain) for _ in range(4)]]
    assert sum(totals) == 1200
    assert {(values["status"], values["version"]) for values in rows().values()} == {("Expired", 2)}
    assert sorted(event["purchaseId"] for event in events()) == sorted(map(str, rows()))


def test_rows_locked_elsewhere_are_skipped_counted_and_taken_up_later():
    older, locked, newer = (PurchaseFactory(ends_at=NOW.replace(hour=hour)) for hour in (1, 2, 3))
    with session() as other:
        other.execute("SELECT FROM promotion.promotion_purchases WHERE id = %s FOR UPDATE", [locked.pk])
        result = cycle()
        assert (result.selected, result.expired, result.skipped_locked) == (2, 2, 1)
        assert statuses([older, locked, newer]) == ["Expired", "Active", "Expired"]
    assert cycle().expired == 1
    assert len(messages(locked)) == 1


def test_locked_rows_behind_the_last_taken_one_are_not_counted():
    purchases = [PurchaseFactory(ends_at=NOW.replace(hour=hour)) for hour in (1, 2, 3, 4)]
    with session() as other:
        for purchase in (purchases[1], purchases[3]):
            other.execute("SELECT FROM promotion.promotion_purchases WHERE id = %s FOR UPDATE", [purchase.pk])
        result = cycle(batch_size=2)
    assert (result.expired, result.skipped_locked) == (2, 1)


def test_a_locked_row_behind_poison_is_counted_once():
    PurchaseFactory(targets=0, ends_at=NOW.replace(hour=1))
    locked = PurchaseFactory(ends_at=NOW.replace(hour=2))
    with session() as other:
        other.execute("SELECT FROM promotion.promotion_purchases WHERE id = %s FOR UPDATE", [locked.pk])
        result = cycle()
    assert (result.failed, result.skipped_locked) == (1, 1)


def test_poison_that_another_worker_notes_while_it_is_locked_here_spoils_no_count():
    """It leaves the candidates between two statements of this transaction: a difference of two counts was -1."""
    taken, locked = (PurchaseFactory(ends_at=NOW.replace(hour=hour)) for hour in (1, 2))
    with session() as other, session() as another, Threads(1) as threads:
        other.execute("SELECT FROM promotion.promotion_purchases WHERE id = %s FOR UPDATE", [locked.pk])
        another.execute("LOCK TABLE promotion.promotion_purchase_targets")  # they are read between the two
        first = threads.submit(cycle)
        eventually(lambda: another.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (1,))
        another.execute("INSERT INTO promotion.expiration_failures VALUES (%s, now(), now(), 1, 'poison')", [taken.pk])
        another.commit()
        result = first.result()
    assert (result.expired, result.skipped_locked) == (1, 1)


def test_the_rows_stay_locked_until_the_commit():
    """While one worker writes, another finds nothing to take, and does not wait."""
    PurchaseFactory.create_batch(3)
    with Gate(*PURCHASES_WRITTEN) as gate, Threads(1) as threads:
        first = threads.submit(cycle)
        gate.wait_for()
        second = cycle()
        assert (second.selected, second.skipped_locked) == (0, 3)
        assert messages() == []
        gate.open()
        assert first.result().expired == 3
    assert len(messages()) == 3


def test_a_worker_that_dies_in_mid_batch_frees_its_rows_at_once():
    purchases = PurchaseFactory.create_batch(3)
    with Gate(*PURCHASES_WRITTEN) as gate, Threads(1) as threads:
        dying = threads.submit(cycle)
        gate.wait_for()
        with session() as other:
            other.execute("SELECT pg_terminate_backend(%s)", [gate.waiting()[0]])
        with pytest.raises(Exception, match=r"terminating connection|closed"):
            dying.result()
        gate.open()
        assert statuses(purchases) == ["Active"] * 3
        assert cycle().expired == 3
    assert len(messages()) == 3
