"""SIGTERM ends the loop within the stated grace with exit code 0, whatever the database does to it at that moment."""

import contextlib
import signal
import time
import urllib.request

import psycopg

from devstack.ports import free_port
from pinpromo.stop import GRACE
from tests.programs import Program, eventually
from tests.proxy import Proxy
from tests.servers import DUE, GATE, LOOP, running, stopped_in_the_select

LONG_UPDATE = GATE.replace("pg_advisory_xact_lock_shared(1)", "pg_sleep(120)")
CUT = 3  # seconds after the grace by which the query is cancelled, or the connection cut
LOADED = 10  # seconds that a busy machine may need for the rest


def test_while_nobody_answers(server):
    """Three loops: one whose connection falls silent, one that is connecting, one in the middle of a long update."""
    with contextlib.ExitStack() as stack:

        def loop_at(port):
            address = server.url.replace(f":{server.port}/", f":{port}/")
            return stack.enter_context(Program(*LOOP, DATABASE_URL=address, EXPIRE_PROMOTIONS_TICK_BUDGET="60"))

        silent, deaf = (stack.enter_context(Proxy("127.0.0.1", server.port)) for _ in range(2))
        deaf.freeze()
        sleeping, connecting = loop_at(silent.port), loop_at(deaf.port)
        sleeping.wait_for("cycle_completed")
        silent.freeze()
        server.execute(DUE)
        server.execute(LONG_UPDATE)
        updating = loop_at(server.port)
        eventually(lambda: deaf.accepted and server.waiting("PgSleep"))
        loops = (sleeping, connecting, updating)
        began = time.monotonic()
        for loop in loops:
            loop.signal(signal.SIGTERM)
        assert [loop.wait() for loop in loops] == [0, 0, 0]
        assert time.monotonic() - began < GRACE + CUT + LOADED
        assert [loop.count("Traceback") for loop in loops] == [0, 0, 0]
    assert_untouched(server)


def test_in_the_middle_of_the_select(server):
    server.execute(DUE)
    with (
        Program(*LOOP, DATABASE_URL=server.url, EXPIRE_PROMOTIONS_TICK_BUDGET="60") as loop,
        stopped_in_the_select(server) as event,
    ):
        eventually(lambda: server.waiting(event))
        began = time.monotonic()
        assert loop.stop() == 0
        assert time.monotonic() - began < GRACE + CUT + LOADED
        assert loop.count("Traceback") == 0
    assert_untouched(server)


def assert_untouched(server):
    assert server.value("SELECT count(*) FROM promotion.promotion_purchases WHERE status = 'Active'") == 5
    assert server.value("SELECT count(*) FROM promotion.outbox") == 0


def test_while_there_are_too_many_clients(server):
    with contextlib.ExitStack() as crowd:
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                crowd.enter_context(psycopg.connect(server.url, autocommit=True))
        with Program(*LOOP, DATABASE_URL=server.url) as loop:
            loop.wait_for("database_failed")
            began = time.monotonic()
            assert loop.stop() == 0
            assert time.monotonic() - began < LOADED


def failed_cycles(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if 'errors_total{reason="infrastructure"}' in line)


def test_the_first_tick_after_an_outage_finds_the_way_back(server):
    port = free_port()
    with running(server, *LOOP, "--ops-port", port) as loop:
        server.halt()
        eventually(lambda: failed_cycles(port) > 3)
        server.start()
        by_then = failed_cycles(port)
        loop.wait_for("database_recovered")
        assert failed_cycles(port) <= by_then + 1  # one that was under way
