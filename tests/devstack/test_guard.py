"""Nothing outlives its owner, however that ends."""

import os
import signal
import sys

import psutil
import pytest

from devstack.postgres import EmbeddedPostgres
from tests.devstack.survivors import assert_gone, family, lives, owner


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_to_the_owner_leaves_nothing(number):
    with owner() as (process, descendants, folders):
        assert len(descendants) >= 5
        os.killpg(process.pid, number)  # Ctrl-C goes to the whole group
        assert_gone(descendants, folders)


def test_a_fork_of_the_owner_does_not_keep_the_servers():
    with owner("fork") as (process, descendants, folders):
        fork = [child for child in descendants if child.cmdline() == psutil.Process(process.pid).cmdline()]
        assert len(fork) == 1
        process.kill()
        assert_gone([child for child in descendants if child not in fork], folders)
        assert lives(fork[0])


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux only")
def test_a_killed_guard_takes_its_server_along():
    with EmbeddedPostgres() as server:
        guard = next(process for process in family() if server.pid in [child.pid for child in process.children()])
        processes = family(guard.pid)
        folder = server.guarded.path
        guard.kill()
        assert_gone(processes)
    assert not folder.exists()


def test_a_terminated_guard_cleans_up():
    with EmbeddedPostgres() as server:
        guard = next(process for process in family() if server.pid in [child.pid for child in process.children()])
        processes, folder = family(guard.pid), server.guarded.path
        guard.terminate()
        assert_gone([*processes, guard], [folder])
