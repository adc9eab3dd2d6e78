"""A campaign that is killed leaves nothing behind."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.devstack.survivors import assert_gone, family
from tests.programs import ROOT

STOPPING = 40.0  # seconds: the programs' grace, and then PostgreSQL's


def test_a_killed_campaign_leaves_no_process_no_folder_and_no_mount():
    before = set(Path(tempfile.gettempdir()).glob("pinpromo-*"))
    command = [sys.executable, "-m", "chaos", "--duration=60", "--broker=embedded", "--only=kill"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True, text=True) as process:
        try:
            next(line for line in process.stdout if "kill" in line)
            descendants = family(process.pid)
            folders = set(Path(tempfile.gettempdir()).glob("pinpromo-*")) - before
            assert len(descendants) > 20
            assert len(folders) > 10
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert_gone(descendants, folders, seconds=STOPPING)
    if Path("/proc/mounts").exists():
        assert not any(str(folder) in Path("/proc/mounts").read_text() for folder in folders)
