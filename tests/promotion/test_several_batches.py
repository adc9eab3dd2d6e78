"""A cycle of several batches, for the stuck and behind poison: what the failure of one means for the others."""

import pytest
from django.db import OperationalError, ProgrammingError, connection

from pinpromo import failures
from promotion.expiration import run_cycle
from promotion.models import ExpirationFailure
from tests.factories import NOW, PurchaseFactory
from tests.readings import messages, statuses

pytestmark = pytest.mark.django_db

FAILS = """
CREATE FUNCTION public.test_hostile() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER test_hostile BEFORE UPDATE ON promotion.promotion_purchases
FOR EACH ROW WHEN (NEW.id = '{}') EXECUTE FUNCTION public.test_hostile()
"""


def cycle(**changes):
    return run_cycle(**{"as_of": NOW, "batch_size": 200, "budget": 30.0} | changes)


def execute(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.fixture
def known():
    """A stuck purchase that has been healed."""
    purchase = PurchaseFactory()
    ExpirationFailure.objects.remember({purchase.pk: "it had no targets"}, at=NOW)
    return purchase


def test_a_failure_among_the_stuck_keeps_nobody_else_from_his_turn(known):
    healthy = PurchaseFactory.create_batch(3)
    execute(FAILS.format(known.pk))
    result = cycle()
    assert statuses([known, *healthy]) == ["Active"] + ["Expired"] * 3
    assert (result.expired, result.failed, result.infrastructure_errors) == (3, 0, 1)
    assert ExpirationFailure.objects.get().attempts == 1


def test_a_failure_after_a_batch_was_committed_is_counted_and_what_was_done_stands():
    poison = PurchaseFactory(targets=0, ends_at=NOW.replace(hour=1))
    first, failing = (PurchaseFactory(ends_at=NOW.replace(hour=hour)) for hour in (2, 3))
    execute(FAILS.format(failing.pk))
    result = cycle(batch_size=2)
    assert statuses([poison, first, failing]) == ["Active", "Expired", "Active"]
    assert (result.expired, result.failed, result.infrastructure_errors) == (1, 1, 1)
    assert ExpirationFailure.objects.get().purchase_id == poison.pk
    assert len(messages()) == 1


def test_a_failure_of_the_only_batch_is_raised():
    execute(FAILS.format(PurchaseFactory().pk))
    with pytest.raises(OperationalError):
        cycle()


def test_a_bug_is_raised_also_among_the_stuck(known):
    execute("ALTER TABLE promotion.promotion_purchase_targets RENAME TO elsewhere")
    with pytest.raises(ProgrammingError) as caught:
        cycle()
    assert not failures.is_infrastructure(caught.value)
