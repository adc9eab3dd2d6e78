"""Processes and folders that must be gone."""

import json
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil


def lives(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def family(pid=None):
    return psutil.Process(pid).children(recursive=True)


def assert_gone(processes, folders=(), *, seconds=20.0):  # a guard waits for up to 15 before it kills
    deadline = time.monotonic() + seconds
    while True:
        left = [*filter(lives, processes), *(path for path in folders if Path(path).exists())]
        if not left or time.monotonic() > deadline:
            assert left == []
            return
        time.sleep(0.05)


# Starts what its arguments name, says where, and waits.
_OWNER = """
import json, os, signal, sys, time
from devstack.broker import EmbeddedBroker
from devstack.mock import MockCluster
from devstack.postgres import EmbeddedPostgres

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
servers = [EmbeddedPostgres(), EmbeddedBroker(), MockCluster()]
for server in servers:
    server.start()
if "fork" in sys.argv and os.fork() == 0:
    time.sleep(60)
    os._exit(0)
print(json.dumps([str(server.guarded.path) for server in servers[:2]]), flush=True)
time.sleep(60)
"""


@contextmanager
def owner(*arguments):
    """A process that owns all three kinds of server: itself, its descendants, their folders."""
    command = [sys.executable, "-c", _OWNER, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, text=True) as process:
        folders = json.loads(process.stdout.readline())
        descendants = family(process.pid)
        try:
            yield process, descendants, folders
        finally:
            process.kill()
            for left in filter(lives, descendants):
                left.kill()
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
