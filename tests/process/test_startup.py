"""What a program says when it cannot work: one clear line, an exit code, no traceback. And its streams."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import PurchaseFactory
from tests.programs import ROOT, Program, environment, eventually, manage
from tests.readings import statuses

NOWHERE = "postgres://nobody:nothing@127.0.0.1:1/none"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"DATABASE_URL": None}, "manage.py: DATABASE_URL is not set. Set it to the database's address"),
        ({"EXPIRE_PROMOTIONS_INTERVAL": "5", "EXPIRE_PROMOTIONS_MIN_INTERVAL": None},
         "manage.py: EXPIRE_PROMOTIONS_INTERVAL is '5': set it to a number from 60 to 300."),
    ],
)  # fmt: skip
def test_a_bad_environment_exits_2(changes, line):
    ended = manage("expire_promotions", **({"DATABASE_URL": NOWHERE} | changes))
    assert (ended.returncode, ended.stdout) == (2, "")
    (only,) = ended.stderr.splitlines()
    assert only.startswith(line)


def test_a_database_that_cannot_be_reached_exits_1():
    ended = manage("expire_promotions", "--json", DATABASE_URL=NOWHERE)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.splitlines()[-1].startswith("CommandError: the database failed (OperationalError: connection")
    assert "Traceback" not in ended.stderr


@pytest.mark.django_db(transaction=True)
def test_logs_go_to_stderr_as_json_results_alone_to_stdout():
    PurchaseFactory()
    ended = manage("expire_promotions", "--json")
    assert ended.returncode == 0
    (line,) = ended.stdout.splitlines()
    run_id = json.loads(line)["run_id"]
    logs = [json.loads(each) for each in ended.stderr.splitlines()]
    happened = [log["event"] for log in logs]
    assert happened == ["cycle_started", "batch_selected", "promotion_expired", "cycle_completed"]
    assert {log["run_id"] for log in logs} == {run_id}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(closed):
    """No connection may take the number of a standard stream: what is printed would go to the database."""
    purchase = PurchaseFactory()
    command = f'exec "{sys.executable}" manage.py expire_promotions --json {closed}'
    ended = subprocess.run(["sh", "-c", command], cwd=ROOT, env=environment(), timeout=60, check=False)
    assert ended.returncode == 0
    assert statuses([purchase]) == ["Expired"]


@pytest.mark.django_db(transaction=True)
def test_a_reader_that_goes_away_does_no_harm():
    purchases = PurchaseFactory.create_batch(3)
    loop = ("expire_promotions", "--drain", "--json", "--batch-size", "1")
    command = f'"{sys.executable}" manage.py {" ".join(loop)} | true; exit ${{PIPESTATUS[0]}}'
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment(), timeout=60, check=False)
    assert ended.returncode == 0
    assert statuses(purchases) == ["Expired"] * 3


@pytest.mark.django_db(transaction=True)
def test_a_full_disk_behind_stdout_does_no_harm():
    purchases = PurchaseFactory.create_batch(3)
    arguments = ("expire_promotions", "--drain", "--json", "--batch-size", "1")
    with Path("/dev/full").open("w") as full, Program(*arguments, stdout=full) as program:
        assert program.wait() == 0
        assert program.count("stdout_lost") == 1
    assert statuses(purchases) == ["Expired"] * 3


@pytest.mark.django_db(transaction=True)
def test_a_loop_outlives_the_readers_of_its_output_and_of_its_log():
    command = [sys.executable, "manage.py", "expire_promotions", "--loop", "--json", "--interval", "0.3"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as loop:
        assert '"run_id"' in loop.stdout.readline()
        loop.stdout.close()
        loop.stderr.close()
        purchases = PurchaseFactory.create_batch(3)
        eventually(lambda: statuses(purchases) == ["Expired"] * 3)
        late = PurchaseFactory()
        eventually(lambda: statuses([late]) == ["Expired"])
        loop.terminate()
        assert loop.wait(60) == 0
