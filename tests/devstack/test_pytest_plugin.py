import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent.parent
_TESTS = """
import os
import psycopg
import pytest

def test_environment():
    print({name: os.environ.get(name) for name in ("DATABASE_URL", "DEBUG", "PINPROMO_ENV_FILE", "OPS_PORT")})
    print("secret", len(os.environ["SECRET_KEY"]))
    if "@127.0.0.1:" in os.environ["DATABASE_URL"]:
        psycopg.connect(os.environ["DATABASE_URL"]).close()

@pytest.mark.broker
def test_any_broker(): pass

@pytest.mark.kafka
def test_kafka(): pass
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p devstack.pytest_plugin --strict-markers\n")
    (tmp_path / "test_it.py").write_text(_TESTS)
    return tmp_path


def run_pytest(project, *arguments, **environ):
    bare = {name: setting for name, setting in os.environ.items() if name not in _OURS}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "-p", "no:django", "-p", "no:randomly", *arguments],
        cwd=project,
        env={**bare, "PYTHONPATH": str(_ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )


_OURS = ("DATABASE_URL", "KAFKA_BOOTSTRAP_SERVERS", "SECRET_KEY", "PINPROMO_ENV_FILE", "DJANGO_SETTINGS_MODULE")


def test_it_starts_what_is_not_given_and_shuts_the_developers_settings_out(project):
    run = run_pytest(project, DEBUG="true", OPS_PORT="9100", KAFKA_BOOTSTRAP_SERVERS="given:9092")
    assert run.returncode == 0, run.stdout
    assert "\npostgresql: embedded 18." in run.stdout
    assert "\nbroker: given by KAFKA_BOOTSTRAP_SERVERS\n" in run.stdout
    assert "'DATABASE_URL': 'postgres://pinpromo:" in run.stdout
    assert "'DEBUG': None, 'PINPROMO_ENV_FILE': '', 'OPS_PORT': None}" in run.stdout
    assert "secret 67" in run.stdout
    assert "2 passed, 1 deselected" in run.stdout
    with socket.socket() as probe:  # stopped before the run has ended, not some time after
        assert probe.connect_ex(("127.0.0.1", int(re.search(r"embedded 18.* on 127.0.0.1:(\d+)", run.stdout)[1])))


def test_a_given_database_is_used(project):
    given = {"DATABASE_URL": "postgres://given/a", "KAFKA_BOOTSTRAP_SERVERS": "given:9092", "SECRET_KEY": "own"}
    run = run_pytest(project, **given)
    assert "\npostgresql: given by DATABASE_URL\n" in run.stdout
    assert "'DATABASE_URL': 'postgres://given/a'" in run.stdout
    assert "secret 3" in run.stdout


def test_with_a_real_kafka_its_tests_are_chosen(project):
    given = {"DATABASE_URL": "postgres://given/a", "KAFKA_BOOTSTRAP_SERVERS": "given:9092"}
    run = run_pytest(project, "--real-kafka", "-m", "kafka or broker", **given)
    assert "2 passed, 1 deselected" in run.stdout


@pytest.mark.parametrize("option", ["-h", "--collect-only", "--version", "--markers"])
def test_nothing_is_started_when_no_test_runs(project, option):
    run = run_pytest(project, option, "-s", TMPDIR="/nonexistent", XDG_CACHE_HOME="/dev/null")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "embedded 18." not in run.stdout


def test_a_server_that_cannot_start_is_one_error(project):
    run = run_pytest(project, XDG_CACHE_HOME="/dev/null")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: cannot write the cache" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_missing_java_is_said_before_anything_is_tested(project, tmp_path):
    run = run_pytest(project, "--real-kafka", PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path), JAVA_HOME="")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: Apache Kafka cannot be started here, this is missing: Java 17" in run.stderr
