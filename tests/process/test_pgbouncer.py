"""Behind PgBouncer in transaction mode: `make test-system` (Debian: apt-get install pgbouncer)."""

import contextlib
import os
import pwd
import shutil
import subprocess
import time

import psycopg
import pytest
from django.db import connection

from devstack.ports import free_port
from pinpromo.stop import GRACE
from tests.bulk import insert_due
from tests.programs import Program, database_url, eventually, manage
from tests.readings import events, rows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.system]
SETTINGS = (
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "transaction_isolation",
    "enable_sort",
)


@pytest.fixture
def pooled(tmp_path):
    """The test database's address through a pool of one server connection, which everybody shares."""
    assert shutil.which("pgbouncer"), "pgbouncer is missing; install it (Debian: apt-get install pgbouncer)"
    port, server = free_port(), connection.settings_dict
    (tmp_path / "users").write_text(f'"{server["USER"]}" "{server["PASSWORD"]}"\n')
    (tmp_path / "ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={server['PORT']}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = plain\nauth_file = {tmp_path}/users\n"
        "pool_mode = transaction\ndefault_pool_size = 1\nserver_reset_query =\n"
    )
    user = []
    if os.geteuid() == 0:  # it refuses to run as root
        for path in (*reversed(tmp_path.parents[:3]), tmp_path):
            path.chmod(0o755)
        user = ["-u", pwd.getpwnam("nobody").pw_name]
    pooler = subprocess.Popen(["pgbouncer", "-q", *user, str(tmp_path / "ini")], stderr=subprocess.DEVNULL)
    address = database_url(host="127.0.0.1", port=port)
    try:
        eventually(lambda: reachable(address))
        yield address
    finally:
        pooler.terminate()
        pooler.wait(10)


def reachable(address):
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(address):
        return True
    return False


def settings(address):
    with psycopg.connect(address, autocommit=True, prepare_threshold=None) as session:
        return [session.execute(f"SHOW {name}").fetchone()[0] for name in SETTINGS]


def test_cycles_work_and_leave_no_setting_behind(pooled):
    insert_due(500)
    before = settings(pooled)
    ended = manage("expire_promotions", "--drain", "--batch-size", "50", DATABASE_URL=pooled)
    assert ended.returncode == 0, ended.stderr
    assert {values["status"] for values in rows().values()} == {"Expired"}
    assert len(events()) == 500
    assert settings(pooled) == before


def test_a_loop_goes_on_after_the_pooler_has_lost_its_server(pooled):
    with Program("expire_promotions", "--loop", "--interval", "0.5", DATABASE_URL=pooled) as loop:
        loop.wait_for("cycle_completed")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        insert_due(5)
        eventually(lambda: {values["status"] for values in rows().values()} == {"Expired"})
        assert loop.stop() == 0
    assert len(events()) == 5


def test_a_stop_while_the_pooler_has_no_server_to_give(pooled):
    """The only server connection is somebody else's: the loop waits in the pooler's queue."""
    with Program("expire_promotions", "--loop", "--interval", "0.5", DATABASE_URL=pooled) as loop:
        loop.wait_for("cycle_completed")
        with psycopg.connect(pooled, prepare_threshold=None) as hog:
            hog.execute("SELECT 1")  # its transaction stays open
            time.sleep(1.5)
            before = loop.count("cycle_completed")
            time.sleep(1.5)
            assert loop.count("cycle_completed") == before
            began = time.monotonic()
            assert loop.stop() == 0
            assert time.monotonic() - began < GRACE + 15
            assert loop.count("Traceback") == 0
