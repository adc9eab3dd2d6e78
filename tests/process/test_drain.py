"""A drain is many cycles in one tick: a stop, or the end of the tick's budget, ends it after the cycle in hand."""

import signal
import time

import pytest

from tests.bulk import insert_due
from tests.factories import PurchaseFactory
from tests.gates import EVENTS_WRITTEN, Gate
from tests.programs import Program
from tests.readings import statuses

pytestmark = pytest.mark.django_db(transaction=True)
RESULT = r'^{"run_id"'


def test_a_stop_ends_it_after_the_cycle_in_hand():
    purchases = PurchaseFactory.create_batch(15)
    with (
        Gate(*EVENTS_WRITTEN) as gate,
        Program("expire_promotions", "--drain", "--batch-size", "5", "--json") as program,
    ):
        gate.wait_for()
        program.signal(signal.SIGTERM)
        program.wait_for("stop_requested")
        gate.open()
        assert program.wait() == 0
        assert program.count(RESULT) == 1
    assert statuses(purchases).count("Expired") == 5


def test_the_end_of_the_budget_ends_it_and_the_next_tick_goes_on():
    insert_due(5_000)
    loop = ("expire_promotions", "--loop", "--drain", "--batch-size", "1", "--json", "--interval", "300")
    with Program(*loop, EXPIRE_PROMOTIONS_TICK_BUDGET="1") as program:
        program.wait_for(RESULT)
        time.sleep(4)
        done = program.count(RESULT)
        time.sleep(1.5)
        assert program.count(RESULT) == done < 5_000
        assert program.stop() == 0
