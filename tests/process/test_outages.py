"""The database goes away from under a running loop, in every way; the loop comes back by itself and loses nothing."""

import contextlib
import signal
import time

import psycopg
import pytest

from tests.programs import Program, eventually
from tests.servers import (
    DUE,
    GATE,
    LOOP,
    Server,
    running,
    stopped_in_the_commit,
    stopped_in_the_select,
    stopped_in_the_update,
)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_restarted_while_the_loop_sleeps(server, mode):
    """Its next tick finds the connection dead, and opens another: no cycle is lost."""
    with running(server, "expire_promotions", "--loop", "--interval", "3") as loop:
        server.restart(mode)
        server.execute(DUE)
        server.settle()
        assert loop.count("database_failed") == 0


def test_away_for_many_ticks(server):
    with running(server) as loop:
        server.halt()
        loop.wait_for("database_failed")
        time.sleep(3)
        server.start()
        server.execute(DUE)
        loop.wait_for("database_recovered")
        server.settle()
        assert loop.count("database_failed") == 1  # not one a tick


def test_away_from_the_very_start(server):
    server.halt()
    with Program(*LOOP, DATABASE_URL=server.url) as loop:
        loop.wait_for("database_failed")
        server.start()
        loop.wait_for("database_recovered")
        assert loop.stop() == 0


def test_a_stop_during_an_outage(server):
    with running(server) as loop:
        server.halt()
        loop.wait_for("database_failed")
        began = time.monotonic()
        assert loop.stop() == 0
        assert time.monotonic() - began < 10
        server.start()


@pytest.mark.parametrize(
    ("stopped", "end"),
    [
        (stopped_in_the_select, Server.kill),
        (stopped_in_the_update, Server.kill),
        (stopped_in_the_commit, Server.kill),
        (stopped_in_the_update, Server.halt),
    ],
)
def test_ended_in_the_middle_of_a_cycle(server, stopped, end):
    """By a power cut, or shut down in good order."""
    server.execute(DUE)
    with Program(*LOOP, DATABASE_URL=server.url) as loop:
        with contextlib.suppress(psycopg.OperationalError), stopped(server) as event:
            eventually(lambda: server.waiting(event))
            end(server)
        loop.wait_for("database_failed")
        server.start()
        loop.wait_for("database_recovered")
        server.settle()
        assert loop.stop() == 0


def test_suspended_with_its_connections_open(server):
    """Half-open: the peer neither answers nor hangs up. The client's own deadline ends the wait."""
    with running(server, EXPIRE_PROMOTIONS_TICK_BUDGET="1") as loop:
        server.suspend()
        loop.wait_for("database_failed")
        server.resume()
        server.execute(DUE)
        loop.wait_for("database_recovered")
        server.settle()


def test_too_many_clients(server):
    with contextlib.ExitStack() as crowd:
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                crowd.enter_context(psycopg.connect(server.url, autocommit=True))
        with Program(*LOOP, DATABASE_URL=server.url) as loop:
            assert "too many clients" in loop.wait_for("database_failed")
            crowd.close()
            loop.wait_for("database_recovered")
            assert loop.stop() == 0


@pytest.mark.parametrize("signals", [1, 2])
def test_a_stop_during_the_commit(server, signals):
    """The commit waits for a standby that never answers: it stands all the same, whole, and the process exits 0."""
    server.execute(DUE)
    with stopped_in_the_commit(server) as event, Program(*LOOP, DATABASE_URL=server.url) as loop:
        eventually(lambda: server.waiting(event))
        loop.signal(signal.SIGTERM)
        loop.wait_for("stop_requested")
        if signals == 1:
            server.execute("SELECT pg_reload_conf()")  # the standby is no longer asked for
            assert loop.wait() == 0
        else:
            assert loop.stop(signal.SIGTERM) == 0
    server.execute("SELECT pg_reload_conf()")
    server.settle()


def test_a_cycle_past_its_budget_is_cut_and_the_next_tick_runs(server):
    server.execute(DUE)
    server.execute(GATE)
    with server.session() as keeper:
        keeper.execute("SELECT pg_advisory_lock(1)")
        with Program(*LOOP, DATABASE_URL=server.url, EXPIRE_PROMOTIONS_TICK_BUDGET="1") as loop:
            assert "57014" in loop.wait_for("database_failed")
            assert server.value("SELECT count(*) FROM promotion.outbox") == 0
            keeper.execute("SELECT pg_advisory_unlock(1)")
            loop.wait_for("database_recovered")
            server.settle()
            assert loop.stop() == 0


def test_read_only_after_a_failover(server):
    with running(server) as loop:
        server.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        server.execute("SELECT pg_reload_conf()")
        with server.session() as session:
            session.execute("SET default_transaction_read_only = off")
            session.execute(DUE)
        assert "25006" in loop.wait_for("database_failed")
        with server.session() as session:
            session.execute("SET default_transaction_read_only = off")
            session.execute("ALTER SYSTEM RESET default_transaction_read_only")
            session.execute("SELECT pg_reload_conf()")
        loop.wait_for("database_recovered")
        server.settle()
