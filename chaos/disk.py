"""A small file system under the outbox, to be filled: a tmpfs, so that the machine's own disk is never at risk.

`python disk.py FOLDER SIZE UID GID` mounts it and waits for SIGTERM. It runs under a guard, so that the mount is gone
whatever ends the campaign.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import psycopg

from devstack import postgres_install
from devstack.guarded import GuardedFolder
from devstack.ports import wait_until

MEGABYTES = 256
READY = "mounted"
MOVE = "ALTER TABLE promotion.outbox SET TABLESPACE small"


class SmallDisk:
    """Started by `with`; `lacks` says why it is not there, if it is not: mounting is for root."""

    def __init__(self) -> None:
        self.lacks = ""
        self._folder = GuardedFolder("small disk", parent=postgres_install.temporary_parent())
        self._mount = self._folder.path / "mount"

    def __enter__(self) -> Self:
        owner = [str(number) for number in postgres_install.owner() or (os.getuid(), os.getgid())]
        command = [sys.executable, __file__, str(self._mount), str(MEGABYTES), *owner]
        self._folder.start(command, environ=os.environ)
        wait_until(lambda: READY in self._folder.log_since(0) or self._folder.poll() is not None, seconds=10)
        if READY not in self._folder.log_since(0):
            self.lacks = (self._folder.log_since(0).strip().splitlines() or ["mount failed"])[-1]
        return self

    def __exit__(self, *_error: object) -> None:
        self._folder.close()

    def put_outbox_there(self, connection: psycopg.Connection) -> None:
        """Move the table, not its indexes."""
        connection.execute(f"CREATE TABLESPACE small LOCATION '{self._mount}/tablespace'")
        connection.execute(MOVE)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Leave no room for the length of the block."""
        filler = self._mount / "filler"
        try:
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(b"\0" * 65_536)
            yield
        finally:
            filler.unlink(missing_ok=True)


def main() -> int:
    """Mount, wait, unmount."""
    folder, megabytes, uid, gid = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    Path(folder).parent.chmod(0o711)
    Path(folder).mkdir()
    options = f"size={megabytes}m,mode=0700,uid={uid},gid={gid}"
    if code := subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False).returncode:
        return code
    try:
        tablespace = Path(folder) / "tablespace"
        tablespace.mkdir()
        os.chown(tablespace, int(uid), int(gid))
        print(READY, flush=True)
        signal.sigwait({signal.SIGTERM})
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
