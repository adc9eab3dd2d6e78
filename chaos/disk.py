"""A small file system under the outbox, to be filled: a tmpfs, so that the machine's own disk is never at risk."""

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import psycopg

from chaos import mount
from devstack import postgres_install
from devstack.guarded import GuardedFolder
from devstack.ports import wait_until

MEGABYTES = 256
MOVE = "ALTER TABLE promotion.outbox SET TABLESPACE small"


class SmallDisk:
    """Started by `with`; `lacks` says why it is not there, if it is not: mounting is for root."""

    def __init__(self) -> None:
        self.lacks = ""
        self._folder = GuardedFolder("small disk", parent=postgres_install.temporary_parent())
        self._mount = self._folder.path / "mount"

    def __enter__(self) -> Self:
        owner = [str(number) for number in postgres_install.owner() or (os.getuid(), os.getgid())]
        command = [sys.executable, mount.__file__, str(self._mount), str(MEGABYTES), *owner]
        self._folder.start(command, environ=os.environ)
        wait_until(lambda: mount.READY in self._folder.log_since(0) or self._folder.poll() is not None, seconds=10)
        if mount.READY not in self._folder.log_since(0):
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
