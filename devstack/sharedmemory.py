"""The System V shared memory that a killed PostgreSQL leaves in the kernel."""

import contextlib
import ctypes
from pathlib import Path

_IPC_RMID = 0
_SHARED_MEMORY_LINE = 6  # of postmaster.pid: key and id


def remove(postmaster_pid: Path) -> None:
    """Remove the segment named in the file, if both are there."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        segment = int(postmaster_pid.read_text().splitlines()[_SHARED_MEMORY_LINE].split()[1])
        ctypes.CDLL(None).shmctl(segment, _IPC_RMID, None)
