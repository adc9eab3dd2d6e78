"""PostgreSQL from a package: a real server on a free port of this machine, gone when its owner is gone."""

import contextlib
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import psutil

from devstack import postgres_install, sharedmemory
from devstack.errors import DevstackError
from devstack.guarded import GuardedFolder
from devstack.ports import HOST, wait_until
from devstack.postgres_template import NAME, copy_template
from devstack.server import EmbeddedServer

_DEFAULTS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    # Files of the folder, not of /dev/shm: nothing outlives a SIGKILL, and a container's /dev/shm is tiny.
    "dynamic_shared_memory_type": "mmap",
}


class EmbeddedPostgres(EmbeddedServer):
    """A cluster with one superuser and one database, both called `pinpromo`.

    Without a directory its files are temporary; in a given one they are kept for the next start.
    `options` are PostgreSQL's own settings, for instance `{"fsync": "off"}`.
    """

    name = "PostgreSQL"
    # Fast shutdown, immediate shutdown, then SIGKILL.
    stop_signals = (("SIGINT", 10.0), ("SIGQUIT", 5.0))

    def __init__(self, directory: Path | None = None, *, options: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__()
        self._directory = directory.resolve() if directory else None
        self._options = {**_DEFAULTS, **options}

    @property
    def url(self) -> str:
        """The value of DATABASE_URL."""
        password = (self.cluster / "password").read_text()
        return f"postgres://{NAME}:{password}@{self.address}/{NAME}"

    @property
    def cluster(self) -> Path:
        """The folder that holds `data` and `password`."""
        return self._directory or self.guarded.path / "cluster"

    def halt(self, mode: str = "fast") -> None:
        """Stop the server, keep its files: `fast` (clients are cut off) or `immediate` (as after a crash)."""
        signals = {"fast": self.stop_signals, "immediate": self.stop_signals[1:]}
        self.guarded.end(signals[mode])

    def restart(self, mode: str = "fast") -> None:
        """Stop and start again on the same port."""
        self.halt(mode)
        self.start()

    def kill(self) -> None:
        """SIGKILL to all its processes at once, as in a power cut; `start` then recovers from the log."""
        backends = self._backends()
        super().kill()
        self._signal(backends, signal.SIGKILL)
        wait_until(lambda: not any(map(_lives, backends)), seconds=10)

    def suspend(self) -> None:
        """SIGSTOP to all its processes: connections stay open, even a query under way stops."""
        super().suspend()
        self._signal(self._backends(), signal.SIGSTOP)

    def resume(self) -> None:
        """The end of `suspend`."""
        self._signal(self._backends(), signal.SIGCONT)
        super().resume()

    def _backends(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def _signal(self, backends: list[psutil.Process], number: signal.Signals) -> None:
        for backend in backends:
            with contextlib.suppress(psutil.NoSuchProcess):
                backend.send_signal(number)

    def _open(self) -> GuardedFolder:
        return GuardedFolder(
            self.name,
            signals=self.stop_signals,
            parent=postgres_install.temporary_parent(),
            owner=postgres_install.owner(),
        )

    def _prepare(self) -> None:
        if self._directory and not postgres_install.reachable(self._directory.parent):
            message = (
                f"{self._directory} cannot be reached by the user that PostgreSQL runs as for root; "
                "choose a folder elsewhere (below /tmp, for instance), or do not work as root"
            )
            raise DevstackError(message)
        if not (self.cluster / "data").exists():
            copy_template(self.cluster)

    def _command(self) -> Sequence[str | Path]:
        programs = postgres_install.programs(self.guarded.path)
        settings = [f"--{name}={setting}" for name, setting in self._options.items()]
        return [programs / "postgres", "-D", self.cluster / "data", f"--port={self.port}", *settings]

    def _answers(self) -> bool:
        """Its own word, as pg_ctl reads it: a connection might reach another server that took the port."""
        try:
            lines = (self.cluster / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(self._pid) and lines[7].strip() == "ready"

    def _clean_up(self) -> None:
        if self.is_running():
            self.resume()
        else:
            sharedmemory.remove(self.cluster / "data" / "postmaster.pid")


def _lives(process: psutil.Process) -> bool:
    """Not so a zombie: the system's first process may be slow to collect those."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
