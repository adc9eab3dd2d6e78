"""Failures of the infrastructure roll the whole batch back: nothing marked, nothing half done (R-08, R-11)."""

import pytest
from django.db import Error, OperationalError, connection

from pinpromo import failures
from promotion.expiration import run_cycle
from promotion.models import ExpirationFailure
from tests.concurrency.workers import Threads
from tests.factories import NOW, PurchaseFactory
from tests.gates import EVENTS_WRITTEN, PURCHASES_WRITTEN, Gate, session
from tests.programs import eventually
from tests.readings import messages, rows, statuses

pytestmark = pytest.mark.django_db(transaction=True)

# One row of the batch draws the error, as a failing disk or a full one would.
ONE_ROW_FAILS = """
CREATE FUNCTION public.test_hostile() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.{column} = '{purchase}' THEN {harm} END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER test_hostile BEFORE {event} ON promotion.{table} FOR EACH ROW EXECUTE FUNCTION public.test_hostile()
"""
ROW = {"column": "id", "event": "UPDATE", "table": "promotion_purchases"}
EVENT = {"column": "aggregate_id", "event": "INSERT", "table": "outbox"}


def cycle(**changes):
    return run_cycle(**{"as_of": NOW, "batch_size": 200, "budget": 30.0} | changes)


def execute(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.fixture
def untouched():
    """Five due purchases that must be found as they were, and then expire when all is well again."""
    purchases = PurchaseFactory.create_batch(5)
    before = rows()
    yield purchases
    assert rows() == before
    assert messages() == []
    assert not ExpirationFailure.objects.exists()
    execute("DROP FUNCTION IF EXISTS public.test_hostile CASCADE")
    assert cycle().expired == 5


@pytest.mark.parametrize("place", [ROW, EVENT], ids=["row", "event"])
@pytest.mark.parametrize(
    "state",
    [
        "08006",
        "25006",
        "25P03",
        "40001",
        "40P01",
        "53100",
        "53200",
        "53300",
        "55P03",
        "57014",
        "57P01",
        "58030",
        "72000",
    ],
)
def test_every_class_of_the_table(untouched, place, state):
    harm = f"RAISE EXCEPTION 'disk of %', NEW USING ERRCODE = '{state}';"
    execute(ONE_ROW_FAILS.format(**place, purchase=untouched[2].pk, harm=harm))
    with pytest.raises(Error) as caught:
        cycle()
    assert failures.is_infrastructure(caught.value)
    assert failures.sqlstate(caught.value) == state


def test_every_class_of_the_table_is_tested():
    tested = next(mark for mark in test_every_class_of_the_table.pytestmark if mark.args[0] == "state").args[1]
    assert [begin for begin in failures.INFRASTRUCTURE if not any(state.startswith(begin) for state in tested)] == []


@pytest.mark.parametrize("state", ["P0001", "22003", "23505", "23514", "42P01", "0A000", "XX000"])
def test_any_other_state_is_the_row_s(state):
    purchases = PurchaseFactory.create_batch(3)
    harm = f"RAISE EXCEPTION 'no' USING ERRCODE = '{state}';"
    execute(ONE_ROW_FAILS.format(**ROW, purchase=purchases[1].pk, harm=harm))
    result = cycle()
    assert (result.expired, result.failed) == (2, 1)
    assert statuses(purchases) == ["Expired", "Active", "Expired"]


def test_a_real_statement_timeout(untouched):
    execute(ONE_ROW_FAILS.format(**ROW, purchase=untouched[0].pk, harm="PERFORM pg_sleep(60);"))
    with pytest.raises(OperationalError) as caught:
        cycle(budget=0.5)
    assert failures.sqlstate(caught.value) == "57014"


def test_a_table_locked_by_a_migration(untouched):
    with session() as other:
        other.execute("LOCK TABLE promotion.promotion_purchases IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(OperationalError) as caught:
            cycle(budget=0.5)
    assert failures.sqlstate(caught.value) in {"55P03", "57014"}  # whichever limit comes first


@pytest.fixture
def other_table():
    """A row that a trigger of somebody else writes with each purchase."""
    execute("CREATE TABLE public.test_other AS SELECT 1 AS number")
    yield
    execute("DROP TABLE public.test_other CASCADE")


def test_a_real_deadlock(untouched, other_table):
    purchase = untouched[0].pk
    execute(ONE_ROW_FAILS.format(**ROW, purchase=purchase, harm="UPDATE public.test_other SET number = 2;"))
    with session() as other, Threads(1) as threads:
        other.execute("UPDATE public.test_other SET number = 3")
        dying = threads.submit(cycle)
        eventually(lambda: waiting_for_a_lock() == 1)
        other.execute("UPDATE promotion.promotion_purchases SET version = version WHERE id = %s", [purchase])
        other.rollback()
        with pytest.raises(OperationalError) as caught:
            dying.result()
    assert failures.sqlstate(caught.value) == "40P01"


def waiting_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone()[0]


def test_a_real_serialization_failure(untouched, other_table):
    purchase = untouched[0].pk
    execute(ONE_ROW_FAILS.format(**ROW, purchase=purchase, harm="UPDATE public.test_other SET number = 2;"))
    database = connection.settings_dict["NAME"]
    execute(f"ALTER DATABASE {database} SET default_transaction_isolation = 'repeatable read'")
    try:
        with Gate(*PURCHASES_WRITTEN) as gate, Threads(1) as threads:
            dying = threads.submit(cycle)
            gate.wait_for()
            with session() as other:
                other.execute("UPDATE public.test_other SET number = 3")
            gate.open()
            with pytest.raises(OperationalError) as caught:
                dying.result()
    finally:
        execute(f"ALTER DATABASE {database} RESET default_transaction_isolation")
    assert failures.sqlstate(caught.value) == "40001"


@pytest.mark.parametrize("statement", [PURCHASES_WRITTEN, EVENTS_WRITTEN])
def test_a_connection_that_is_cut_in_mid_transaction(untouched, statement, capfd):
    with Gate(*statement) as gate, Threads(1) as threads:
        dying = threads.submit(cycle)
        gate.wait_for()
        with session() as other:
            other.execute("SELECT pg_terminate_backend(%s)", [gate.waiting()[0]])
        with pytest.raises(OperationalError):
            dying.result()
    assert "promotion_expired" not in capfd.readouterr().err


def test_a_standby_after_a_failover(untouched):
    """The session finds itself read-only."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    try:
        with pytest.raises(Error) as caught:
            cycle()
    finally:
        execute("SET default_transaction_read_only = off")
    assert failures.sqlstate(caught.value) == "25006"
