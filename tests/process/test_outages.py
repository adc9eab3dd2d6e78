"""The database goes away from under a running loop, in every way; the loop comes back by itself and loses nothing."""

import contextlib
import signal
import time

import psycopg
import pytest

from devstack.postgres import EmbeddedPostgres
from tests.programs import Program, eventually, manage
from tests.proxy import Proxy

LOOP = ("expire_promotions", "--loop", "--json", "--interval", "0.5")
DUE = """
WITH purchase AS (
    INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
    SELECT gen_random_uuid(), 'Boost', 'Active', now() - interval '9 days', now() FROM generate_series(1, 5)
    RETURNING id
)
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, 'NewsPost', gen_random_uuid() FROM purchase
"""
GATE = """
CREATE FUNCTION public.gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
CREATE TRIGGER gate BEFORE UPDATE ON promotion.promotion_purchases FOR EACH STATEMENT EXECUTE FUNCTION public.gate();
"""


class Server(EmbeddedPostgres):
    """A PostgreSQL of the tests' own, to be treated badly."""

    def execute(self, sql):
        with self.session() as session:
            session.execute(sql)

    @contextlib.contextmanager
    def session(self):
        with psycopg.connect(self.url, autocommit=True) as session:
            yield session

    def value(self, sql):
        with self.session() as session:
            return session.execute(sql).fetchone()[0]

    def waiting(self, event):
        """How many other sessions wait for such an event."""
        return self.value(
            f"SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND wait_event = '{event}'"
        )

    def settle(self):
        """Wait until every purchase has expired; fail unless each did once, with one event."""
        eventually(lambda: not self.value("SELECT count(*) FROM promotion.promotion_purchases WHERE status = 'Active'"))
        assert self.value("SELECT max(version) FROM promotion.promotion_purchases") == 2
        events = "SELECT count(*) - count(DISTINCT aggregate_id) FROM promotion.outbox"
        assert self.value(events) == 0
        purchases = "SELECT (SELECT count(*) FROM promotion.outbox) - count(*) FROM promotion.promotion_purchases"
        assert self.value(purchases) == 0


@pytest.fixture(scope="module")
def the_server():
    with Server(options={"fsync": "off", "max_connections": "20"}) as server:
        assert manage("migrate", DATABASE_URL=server.url).returncode == 0
        yield server


@pytest.fixture
def server(the_server):
    yield the_server
    the_server.execute("DROP FUNCTION IF EXISTS public.gate CASCADE")
    the_server.execute("TRUNCATE promotion.promotion_purchases, promotion.outbox CASCADE")


@contextlib.contextmanager
def running(server, *arguments, **changes):
    """A loop that has completed a cycle; it must survive the block, and end cleanly."""
    with Program(*(arguments or LOOP), **({"DATABASE_URL": server.url} | changes)) as loop:
        loop.wait_for("cycle_completed")
        yield loop
        assert loop.stop() == 0
        assert loop.count("Traceback") == 0


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


@contextlib.contextmanager
def stopped_in_the_select(server):
    with server.session() as keeper, keeper.transaction():
        keeper.execute("LOCK TABLE promotion.promotion_purchases IN ACCESS EXCLUSIVE MODE")
        yield "relation"


@contextlib.contextmanager
def stopped_in_the_update(server):
    server.execute(GATE)
    with server.session() as keeper:
        keeper.execute("SELECT pg_advisory_lock(1)")
        yield "advisory"


@contextlib.contextmanager
def stopped_in_the_commit(server):
    server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    server.execute("SELECT pg_reload_conf()")
    server.execute("ALTER SYSTEM RESET synchronous_standby_names")  # for the next start
    yield "SyncRep"


@pytest.mark.parametrize("stopped", [stopped_in_the_select, stopped_in_the_update, stopped_in_the_commit])
def test_killed_in_the_middle_of_a_cycle(server, stopped):
    server.execute(DUE)
    with Program(*LOOP, DATABASE_URL=server.url) as loop:
        with contextlib.suppress(psycopg.OperationalError), stopped(server) as event:
            eventually(lambda: server.waiting(event))
            server.kill()
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


def test_packets_swallowed_and_a_stop_meanwhile(server):
    with Proxy("127.0.0.1", server.port) as proxy:
        address = server.url.replace(f":{server.port}/", f":{proxy.port}/")
        with Program(*LOOP, DATABASE_URL=address, EXPIRE_PROMOTIONS_TICK_BUDGET="60") as loop:
            loop.wait_for("cycle_completed")
            proxy.freeze()
            time.sleep(1)
            began = time.monotonic()
            assert loop.stop() == 0
            assert time.monotonic() - began < 25  # 10 of grace, then the connection is cut


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
