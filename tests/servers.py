"""A PostgreSQL of the tests' own, to be treated badly, and the moments of a cycle at which that is done."""

import contextlib

import psycopg

from devstack.postgres import EmbeddedPostgres
from tests.programs import Program, eventually

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


@contextlib.contextmanager
def running(server, *arguments, **changes):
    """A loop that has completed a cycle; it must survive the block, and end cleanly."""
    with Program(*(arguments or LOOP), **({"DATABASE_URL": server.url} | changes)) as loop:
        loop.wait_for("cycle_completed")
        yield loop
        assert loop.stop() == 0
        assert loop.count("Traceback") == 0
