import os
import signal
import subprocess
import sys

import pytest

from tests.devstack.survivors import assert_gone, family

_SHOW = "import os; print(os.environ['DATABASE_URL'], os.environ['KAFKA_BOOTSTRAP_SERVERS'], os.environ['SECRET_KEY'])"


_CONNECT = """
import os, sys, psycopg
psycopg.connect(os.environ["DATABASE_URL"]).close()
print(len(os.environ["SECRET_KEY"]))
sys.exit(7)
"""


def devstack(*arguments, **environ):
    bare = {name: setting for name, setting in os.environ.items() if name not in _GIVEN}
    return subprocess.Popen(
        [sys.executable, "-m", "devstack", *arguments],
        env={**bare, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


_GIVEN = ("DATABASE_URL", "KAFKA_BOOTSTRAP_SERVERS", "SECRET_KEY")


def test_the_command_sees_the_servers_and_its_exit_code_is_passed_on():
    with devstack("run", "--", sys.executable, "-c", _CONNECT) as run:
        out, errors = run.communicate(timeout=60)
        assert (out, run.returncode) == ("67\n", 7)
        assert "PostgreSQL: embedded 18." in errors
        assert "Broker: embedded Tansu on 127.0.0.1:" in errors


def test_what_the_environment_gives_wins():
    given = {"DATABASE_URL": "postgres://given/a", "KAFKA_BOOTSTRAP_SERVERS": "given:9092", "SECRET_KEY": "given"}
    with devstack("run", "--", sys.executable, "-c", _SHOW, **given) as run:
        out, errors = run.communicate(timeout=60)
    assert out == "postgres://given/a given:9092 given\n"
    assert errors == "PostgreSQL: given by DATABASE_URL\nBroker: given by KAFKA_BOOTSTRAP_SERVERS\n"


def test_a_program_that_does_not_exist_takes_one_line():
    with devstack("run", "--", "no-such-program") as run:
        assert run.communicate(timeout=60)[1].splitlines()[2:] == ["devstack: no-such-program: no such program"]
        assert run.returncode == 1


def test_no_command_is_a_usage_error():
    with devstack("run") as run:
        assert "usage:" in run.communicate(timeout=60)[1]
        assert run.returncode == 2


_CLEAN_STOP = """
import signal, sys, time
signal.signal(signal.{name}, lambda *_: sys.exit(5))
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_lets_the_command_end_by_itself(name):
    with devstack("run", "--", sys.executable, "-c", _CLEAN_STOP.format(name=name)) as run:
        assert run.stdout.readline() == "ready\n"
        processes = family(run.pid)
        if name == "SIGINT":
            os.killpg(run.pid, signal.SIGINT)  # as the terminal does
        else:
            run.terminate()
        assert run.wait(30) == 5
        assert_gone(processes, seconds=0)


def test_a_command_ended_by_a_signal():
    with devstack("run", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)") as run:
        run.communicate(timeout=60)
        assert run.returncode == 137


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux only")
def test_sigkill_takes_command_and_servers_along():
    with devstack("run", "--", sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)") as run:
        assert run.stdout.readline() == "ready\n"
        processes = family(run.pid)
        run.kill()
        assert_gone(processes)
