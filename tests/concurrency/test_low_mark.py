"""The cycles of a drain start where the last one found the oldest, and pass over nothing that is committed late."""

import time

import psycopg
import pytest
from django.core.management import call_command

from promotion import outlook
from promotion.expiration import run_cycle
from promotion.models import EARLIEST
from promotion.outlook import LowMark
from tests.bulk import insert_due
from tests.factories import NOW, PurchaseFactory
from tests.gates import session
from tests.readings import messages, statuses

pytestmark = pytest.mark.django_db(transaction=True)
LATER = NOW.replace(hour=6)
LATE = """
WITH purchase AS (
    INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
    VALUES (gen_random_uuid(), 'Boost', 'Active', '2025-12-01Z', '2026-01-01Z') RETURNING id
)
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, 'NewsPost', gen_random_uuid() FROM purchase RETURNING purchase_id
"""


@pytest.fixture
def mark(monkeypatch):
    """One that looks back only when it must."""
    monkeypatch.setattr(outlook, "WHOLE_EVERY", 3_600.0)
    return LowMark()


def cycle(mark, **changes):
    return run_cycle(**{"as_of": NOW, "batch_size": 1, "budget": 30.0, "retry_stuck": False, "mark": mark} | changes)


def begin_late(other):
    """Insert a purchase older than all others; it is there once `other` commits."""
    return other.execute(LATE).fetchone()[0]


def test_a_look_starts_at_the_oldest_that_the_last_one_found(mark):
    older, newer = PurchaseFactory(ends_at=LATER), PurchaseFactory()
    looks = [mark.look_ahead(NOW, retries=0), mark.look_ahead(NOW, retries=0)]
    assert [look.oldest_due for look in looks] == [older.ends_at] * 2
    assert looks[1].since == older.ends_at
    assert [cycle(mark).expired for _ in range(3)] == [1, 1, 0]
    assert statuses([older, newer]) == ["Expired"] * 2


def test_the_stuck_do_not_hold_the_mark_back(mark):
    stuck, healthy = PurchaseFactory(targets=0, ends_at=LATER), PurchaseFactory()
    assert mark.look_ahead(NOW, retries=0).oldest_due == stuck.ends_at
    assert cycle(mark, batch_size=5).failed == 1
    PurchaseFactory(ends_at=healthy.ends_at)
    assert mark.look_ahead(NOW, retries=0).oldest_due == healthy.ends_at
    assert cycle(mark, batch_size=5, retry_stuck=True).failed == 1


def test_an_older_purchase_that_is_committed_late_is_expired_before_the_rest_of_a_long_drain(monkeypatch):
    monkeypatch.setattr(outlook, "WHOLE_EVERY", 0.1)
    insert_due(1_000)
    mark = LowMark()
    with session() as other:
        late = begin_late(other)
        assert cycle(mark).expired == 1
        other.commit()
    committed, left = time.monotonic(), 999
    while not messages_of(late):
        left -= cycle(mark).expired
        assert left > 0, "only the end of the drain brought it to light"
    assert time.monotonic() - committed < 10


def messages_of(purchase_id):
    return [message for message in messages() if message.aggregate_id == purchase_id]


def test_a_short_batch_is_filled_with_what_was_committed_late(mark):
    newer = PurchaseFactory.create_batch(3, ends_at=LATER)
    with session() as other:
        late = begin_late(other)
        assert cycle(mark, batch_size=2).expired == 2
        other.commit()
    assert cycle(mark, batch_size=2).expired == 2
    assert len(messages_of(late)) == 1
    assert statuses(newer) == ["Expired"] * 3


def test_nothing_behind_the_mark_is_no_end_either(mark):
    PurchaseFactory(ends_at=LATER)
    with session() as other:
        late = begin_late(other)
        assert cycle(mark).expired == 1
        mark.look_ahead(NOW, retries=0)
        other.commit()
    assert cycle(mark).expired == 1
    assert len(messages_of(late)) == 1


def test_locked_rows_on_both_sides_of_the_mark_are_counted_once(mark):
    PurchaseFactory.create_batch(2, ends_at=LATER)
    locked = PurchaseFactory()
    with session() as other, session() as third:
        late = begin_late(other)
        assert cycle(mark).expired == 1
        other.commit()
        third.execute("SELECT FROM promotion.promotion_purchases WHERE id IN (%s, %s) FOR UPDATE", [late, locked.pk])
        result = cycle(mark, batch_size=5)
    assert (result.expired, result.skipped_locked) == (1, 2)


def test_the_first_cycle_of_a_tick_looks_at_everything(mark):
    PurchaseFactory.create_batch(2, ends_at=LATER)
    with session() as other:
        late = begin_late(other)
        assert cycle(mark).expired == 1
        other.commit()
    assert cycle(mark, retry_stuck=True).expired == 1
    assert len(messages_of(late)) == 1


def test_a_clock_that_is_put_back_hides_nothing(mark):
    """The mark stands behind the new instant."""
    early = PurchaseFactory(ends_at=NOW.replace(hour=1))
    PurchaseFactory.create_batch(2, ends_at=LATER)
    assert mark.look_ahead(NOW, retries=0).oldest_due == early.ends_at
    assert cycle(mark).expired == 1
    mark.look_ahead(NOW, retries=0)
    back = PurchaseFactory(ends_at=NOW.replace(hour=2))
    PurchaseFactory(ends_at=NOW.replace(hour=4))
    result = cycle(mark, as_of=NOW.replace(hour=3), batch_size=5)
    assert (result.expired, result.failed) == (1, 0)
    assert statuses([back]) == ["Expired"]


def test_a_drain_looks_at_everything_once_and_from_its_mark_on_then(mark, monkeypatch):
    purchases = [PurchaseFactory(ends_at=NOW.replace(hour=hour)) for hour in (1, 2, 3)]
    looks, execute = [], psycopg.Cursor.execute

    def watched(self, statement, parameters=None, **options):
        looks.extend([parameters["since"]] if "since" in (parameters or ()) else [])
        return execute(self, statement, parameters, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", watched)
    call_command("expire_promotions", "--drain", "--batch-size", "1")
    ends = [purchase.ends_at for purchase in purchases]
    assert looks == [EARLIEST, *ends, EARLIEST]
