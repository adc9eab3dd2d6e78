"""Every wait of a transaction is bounded, and its limits end with it."""

import contextlib
import time

import pytest
from django.db import IntegrityError, OperationalError, close_old_connections, connection, transaction

from pinpromo import failures
from pinpromo.database import plain_cursor
from pinpromo.transactions import bounded
from tests.gates import session
from tests.proxy import Proxy

pytestmark = pytest.mark.django_db(transaction=True)
SETTINGS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


def execute(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0] if cursor.description else None


def settings():
    return [execute(f"SHOW {name}") for name in SETTINGS]


def test_the_limits_hold_inside_and_end_with_the_transaction():
    outside = settings()
    with bounded(seconds=7, lock_seconds=3, idle_seconds=9):
        assert settings() == ["7s", "3s", "9s"]
    assert settings() == outside
    with pytest.raises(ZeroDivisionError), bounded(seconds=7):
        raise ZeroDivisionError
    assert settings() == outside


def test_stands_in_no_other_transaction():
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic(), bounded(seconds=1):
        pass


def test_a_deferred_constraint_is_checked_by_the_statement_itself():
    with bounded(seconds=5), pytest.raises(IntegrityError), transaction.atomic():
        execute(
            "INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)"
            " VALUES (gen_random_uuid(), 'NewsPost', gen_random_uuid())"
        )


def test_a_long_statement_is_cut_by_the_server():
    with pytest.raises(OperationalError) as caught, bounded(seconds=0.2):
        execute("SELECT pg_sleep(60)")
    assert failures.sqlstate(caught.value) == "57014"


def test_a_lock_is_waited_for_no_longer_than_said():
    with session() as other:
        other.execute("SELECT FROM promotion.outbox_lanes WHERE lane = 1 FOR UPDATE")
        with pytest.raises(OperationalError) as caught, bounded(seconds=60, lock_seconds=0.1):
            execute("SELECT FROM promotion.outbox_lanes WHERE lane = 1 FOR UPDATE")
    assert failures.sqlstate(caught.value) == "55P03"


def test_many_statements_each_below_the_limit_are_bounded_together():
    done = 0
    with pytest.raises(OperationalError), bounded(seconds=0.5):
        for _ in range(50):
            execute("SELECT pg_sleep(0.3)")
            done += 1
    assert done < 30


def test_a_silent_network_is_not_waited_for():
    """The proxy accepts every packet and answers none, as a dead peer behind a load balancer does."""
    with Proxy("127.0.0.1", int(connection.settings_dict["PORT"])) as proxy, through(proxy):
        execute("SELECT 1")
        began = time.monotonic()
        with pytest.raises(OperationalError) as caught, bounded(seconds=0.5):
            proxy.freeze()
            execute("SELECT 1")
        assert failures.is_infrastructure(caught.value)
        assert time.monotonic() - began < 30
        proxy.thaw()
        assert execute("SELECT 1") == 1  # on a new connection


@contextlib.contextmanager
def through(proxy):
    """Django's connection goes through the proxy."""
    before = connection.settings_dict.copy()
    options = before["OPTIONS"] | {"connect_timeout": 2}
    connection.close()
    connection.settings_dict.update(HOST="127.0.0.1", PORT=proxy.port, OPTIONS=options)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)


def test_a_connection_that_died_between_two_ticks_is_replaced_before_it_is_used():
    execute("SELECT 1")
    with session() as other:
        other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
    close_old_connections()
    with plain_cursor() as cursor:
        assert cursor.execute("SELECT 1").fetchone() == (1,)
