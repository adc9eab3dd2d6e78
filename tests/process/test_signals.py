"""Real processes and real signals: all or nothing, exit 0, no lock left (R-24, R-65)."""

import json
import random
import re
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from devstack.ports import wait_until
from promotion.models import ExpirationFailure
from tests.factories import NOW, PurchaseFactory
from tests.gates import EVENTS_WRITTEN, PURCHASES_WRITTEN, Gate
from tests.programs import PATIENCE, Program, manage
from tests.readings import events, rows, statuses

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = NOW - timedelta(days=9)
FAILURES_WRITTEN = ("INSERT", "expiration_failures")
RESULT = r'^{"run_id"'
LOOP = ("expire_promotions", "--loop", "--json", "--interval", "300")


def assert_nobody_holds_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '10s'; LOCK TABLE promotion.promotion_purchases; RESET lock_timeout")


def assert_all_or_nothing(purchases):
    found = set(statuses(purchases))
    assert found in ({"Active"}, {"Expired"})
    assert len(events()) == (len(purchases) if found == {"Expired"} else 0)
    return found.pop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_sleeping_loop_ends_at_once(number):
    with Program(*LOOP) as program:
        program.wait_for("cycle_completed")
        began = time.monotonic()
        assert program.stop(number) == 0
        assert time.monotonic() - began < 10  # not 300
        assert program.count("Traceback") == 0


@pytest.mark.parametrize("arguments", [LOOP, ("expire_promotions", "--json")], ids=["loop", "one-off"])
@pytest.mark.parametrize("statement", [PURCHASES_WRITTEN, EVENTS_WRITTEN], ids=["purchases", "events"])
def test_the_first_signal_lets_the_batch_in_hand_end_whole(arguments, statement):
    purchases = PurchaseFactory.create_batch(5)
    with Gate(*statement) as gate, Program(*arguments) as program:
        gate.wait_for()
        program.signal(signal.SIGTERM)
        program.wait_for("stop_requested")
        gate.open()
        assert program.wait() == 0
        assert program.count('"expired": 5') >= 1
    assert assert_all_or_nothing(purchases) == "Expired"


@pytest.mark.parametrize("arguments", [LOOP, ("expire_promotions", "--json")], ids=["loop", "one-off"])
def test_the_second_signal_ends_a_long_statement_at_once_and_rolls_back(arguments):
    purchases = PurchaseFactory.create_batch(5)
    with Gate(*PURCHASES_WRITTEN) as gate:
        with Program(*arguments) as program:
            gate.wait_for()
            program.signal(signal.SIGTERM)
            program.wait_for("stop_requested")
            began = time.monotonic()
            assert program.stop(signal.SIGTERM) == 0
            assert time.monotonic() - began < 8  # the grace is 10, the statement's own limit 30
        assert_nobody_holds_a_lock()
        assert assert_all_or_nothing(purchases) == "Active"


def test_a_stop_between_two_batches_begins_no_further_one():
    """Poison makes a cycle of several batches: a stop waits for the one in hand, not for all."""
    PurchaseFactory.create_batch(5, targets=0, ends_at=LONG_AGO)
    healthy = PurchaseFactory.create_batch(5)
    with Gate(*FAILURES_WRITTEN) as gate, Program("expire_promotions", "--batch-size", "5") as program:
        gate.wait_for()
        program.signal(signal.SIGTERM)
        program.wait_for("stop_requested")
        gate.open()
        assert program.wait() == 0
    assert ExpirationFailure.objects.count() == 5
    assert assert_all_or_nothing(healthy) == "Active"


def test_kill_9_in_mid_batch_frees_the_rows_at_once():
    purchases = PurchaseFactory.create_batch(5)
    with Gate(*EVENTS_WRITTEN) as gate:
        with Program(*LOOP) as program:
            gate.wait_for()
            assert program.stop(signal.SIGKILL) == -signal.SIGKILL
        gate.open()
        assert manage("expire_promotions", "--json").returncode == 0
    assert assert_all_or_nothing(purchases) == "Expired"
    assert {values["version"] for values in rows().values()} == {2}


SLOW = """
CREATE FUNCTION public.test_slow{number}() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END $$;
CREATE TRIGGER test_slow{number} BEFORE {event} ON promotion.{table}
FOR EACH ROW EXECUTE FUNCTION public.test_slow{number}()
"""


def heeds_sigterm(pid):
    """Whether manage.py has begun: until then no program can do anything about a signal."""
    masks = re.findall(r"Sig(?:Blk|Cgt):\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text())
    return any(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in masks)


@pytest.mark.parametrize("arguments", [LOOP, ("expire_promotions", "--json")], ids=["loop", "one-off"])
def test_sigterm_at_twenty_offsets_from_the_first_line_of_the_program_to_after_the_commit(arguments):
    """Exit 0, and all or nothing, each time. The wait in COMMIT itself has a test in test_outages.py."""
    with connection.cursor() as cursor:
        for number, (event, table) in enumerate([("UPDATE", "promotion_purchases"), ("INSERT", "outbox")]):
            cursor.execute(SLOW.format(number=number, event=event, table=table))
    found = []
    try:
        for step in range(10):
            purchases = PurchaseFactory.create_batch(5)
            with Program(*arguments) as program:
                if step < 3:
                    assert wait_until(lambda: heeds_sigterm(program.process.pid), seconds=PATIENCE)
                    time.sleep(step * 0.2)
                else:
                    program.wait_for("cycle_started")
                    time.sleep((step - 3) * 0.04)
                assert program.stop() == 0, f"step {step}"
                told = [json.loads(line)["expired"] for line in program.lines if re.match(RESULT, line)]
            found.append(assert_all_or_nothing(purchases))
            assert sum(told) == (5 if found[-1] == "Expired" else 0)
            assert_nobody_holds_a_lock()
            with connection.cursor() as cursor:
                cursor.execute("TRUNCATE promotion.promotion_purchases, promotion.outbox CASCADE")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION public.test_slow0 CASCADE; DROP FUNCTION public.test_slow1 CASCADE")
    assert found[-1] == "Expired"


def test_sigkill_at_random_moments_loses_nothing_and_doubles_nothing():
    purchases = PurchaseFactory.create_batch(300)
    for _ in range(4):
        with Program("expire_promotions", "--drain", "--batch-size", "10") as program:
            program.wait_for("batch_selected")
            time.sleep(random.uniform(0, 0.1))
            program.stop(signal.SIGKILL)
        assert len(events()) == statuses(purchases).count("Expired")
    assert manage("expire_promotions", "--drain").returncode == 0
    assert assert_all_or_nothing(purchases) == "Expired"
    assert {values["version"] for values in rows().values()} == {2}


def test_sighup_does_no_harm_to_a_sleeping_loop_nor_to_a_batch_in_hand():
    with Gate(*EVENTS_WRITTEN) as gate, Program("expire_promotions", "--loop", "--json", "--interval", "1") as program:
        program.wait_for("cycle_completed")
        program.signal(signal.SIGHUP)
        purchases = PurchaseFactory.create_batch(5)
        gate.wait_for()
        program.signal(signal.SIGHUP)
        gate.open()
        program.wait_for("promotion_expired")
        assert program.stop() == 0
    assert assert_all_or_nothing(purchases) == "Expired"


@pytest.mark.parametrize("statement", [PURCHASES_WRITTEN, EVENTS_WRITTEN])
def test_a_worker_that_is_stopped_for_good_in_mid_transaction_loses_its_locks(statement):
    """The server ends what stands idle; another worker takes over, and the first one finds out when it goes on."""
    purchases = PurchaseFactory.create_batch(3)
    short = {"EXPIRE_PROMOTIONS_TICK_BUDGET": 3}
    with Gate(*statement) as gate, Program("expire_promotions", "--loop", "--interval", "2", **short) as program:
        gate.wait_for()
        program.signal(signal.SIGSTOP)
        gate.open()  # what it had asked for is done, and it does not go on
        assert_nobody_holds_a_lock()
        assert set(statuses(purchases)) == {"Active"}
        assert manage("expire_promotions").returncode == 0
        assert assert_all_or_nothing(purchases) == "Expired"
        program.signal(signal.SIGCONT)
        program.wait_for("cycle_completed")
        assert program.stop() == 0
    assert {values["version"] for values in rows().values()} == {2}


def test_sigstop_for_several_intervals_then_one_tick_and_no_burst():
    with Program("expire_promotions", "--loop", "--json", "--interval", "2") as program:
        program.wait_for("cycle_completed")
        program.signal(signal.SIGSTOP)
        time.sleep(6.5)
        before = program.count(RESULT)
        program.signal(signal.SIGCONT)
        program.wait_for("cycle_started", timeout=1.9)
        time.sleep(1)
        assert program.count(RESULT) <= before + 2  # the one, and perhaps the next on the grid; not three more
        assert program.stop() == 0
