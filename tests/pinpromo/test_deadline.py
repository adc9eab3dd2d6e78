"""Deadlines end the database calls of their own block, at their own time, whatever else is watched or forked."""

import subprocess
import sys
import threading
import time

import pytest
from django.db import OperationalError, connection

from pinpromo import failures
from pinpromo.deadline import _Watch, deadline
from tests.concurrency.workers import Threads
from tests.gates import session
from tests.programs import PATIENCE, ROOT, environment

pytestmark = pytest.mark.django_db(transaction=True)


def sleep(seconds):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [seconds])
    return True


def sleep_within(seconds, *, limit):
    with deadline(limit):
        return sleep(seconds)


def test_work_that_ends_in_time_is_left_alone_and_so_is_what_follows():
    assert sleep_within(0.01, limit=0.5)
    assert sleep(0.8)


def test_a_call_that_takes_too_long_is_cancelled():
    began = time.monotonic()
    with pytest.raises(OperationalError) as caught:
        sleep_within(60, limit=0.2)
    assert failures.sqlstate(caught.value) == "57014"
    assert time.monotonic() - began < 30


def test_a_block_that_goes_on_after_the_first_interruption_loses_its_connection():
    sleep(0)
    server_process = connection.connection.info.backend_pid
    with pytest.raises(OperationalError) as caught, deadline(0.2):
        with pytest.raises(OperationalError):
            sleep(60)
        sleep(60)
    assert failures.sqlstate(caught.value) is None  # not a word from the server, which sleeps on
    connection.close()
    with session() as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [server_process])


def test_of_several_at_once_each_ends_at_its_own_time():
    """The later ones are shorter, so the watcher has to wake up earlier than it meant to."""
    with Threads(4) as threads:
        patient = threads.submit(sleep_within, 2.0, limit=120)
        hurried = []
        for limit in (60, 0.6, 0.3):
            hurried.append(threads.submit(sleep_within, 60 if limit < 60 else 0.1, limit=limit))
            time.sleep(0.1)
        in_time, *cut = hurried
        assert in_time.result()
        for future in cut:
            with pytest.raises(OperationalError):
                future.result(timeout=30)
        assert patient.result()


def test_an_interruption_that_comes_too_late_hits_nothing():
    """The watcher has already seen that time is over when the block ends."""
    sleep(0)
    watch = _Watch(0)
    watch.end()
    watch.interrupt()
    watch.interrupt()
    assert sleep(0.1)


def test_a_watcher_rests_when_there_is_nothing_to_watch():
    with deadline(0.1):
        pass
    time.sleep(0.2)
    spent = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - spent < 0.1


def test_one_thread_watches_all():
    with Threads(3) as threads:
        waiting = [threads.submit(sleep_within, 0.1, limit=9) for _ in range(20)]
        assert all(future.result() for future in waiting)
    assert [thread.name for thread in threading.enumerate()].count("deadline") == 1


FORKED = """
import os, sys, time, django
django.setup()
from django.db import OperationalError, connection, connections
from pinpromo.deadline import deadline

def sleep(seconds):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [seconds])

sleep(0)
def attend_to_itself():
    del connections["default"]  # the parent's
    try:
        with deadline(1.5):
            sleep(60)
    except OperationalError:
        os._exit(7)
    os._exit(8)

with deadline(1.0):
    child = os.fork()
    if not child:
        attend_to_itself()
sleep(2.0)  # the child's copy of the parent's deadline must not cancel this
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_watches_its_own_deadlines_and_none_of_its_parent():
    finished = subprocess.run(
        [sys.executable, "-c", FORKED],
        cwd=ROOT, env=environment(DJANGO_SETTINGS_MODULE="pinpromo.settings", PYTHONWARNINGS=None),
        timeout=PATIENCE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 7, finished.stderr
