"""A temporary folder and one process at a time in it, both gone when their owner is gone."""

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from devstack import guard
from devstack.companion import Companion
from devstack.errors import ServerFailedError
from devstack.ports import wait_until

_LOG_TAIL = 6
_COMPLAINT = re.compile(r"\b(FATAL|ERROR|Caused by)\b|Exception")


class GuardedFolder:
    """The owner's handle on a guard (see `guard`); `close` ends the process and removes the folder."""

    def __init__(
        self,
        name: str,
        *,
        signals: Sequence[tuple[str, float]] = (("SIGTERM", 10.0),),
        parent: Path | None = None,
        owner: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.owner = list(owner)
        settings = {
            "signals": list(signals),
            "parent": str(parent or tempfile.gettempdir()),
            "prefix": f"pinpromo-{name.lower().replace(' ', '-')}-",
            "owner": self.owner,
        }
        # -I -S: neither the environment nor site-packages slow it down or change it.
        self._companion = Companion([sys.executable, "-I", "-S", guard.__file__, json.dumps(settings)])
        self.path = Path(self._companion.greeting)
        self.log = self.path / "server.log"

    def start(self, command: Sequence[str | Path], *, environ: Mapping[str, str], stdin: Path | None = None) -> int:
        """Start a process, its output appended to the log; its process id."""
        pid = self._companion.ask(
            "start",
            argv=[str(part) for part in command],
            env=dict(environ),
            cwd=str(self.path),
            stdin=str(stdin or os.devnull),
            log=str(self.log),
            owner=self.owner,
        )
        return int(pid)

    def run(
        self,
        command: Sequence[str | Path],
        *,
        environ: Mapping[str, str],
        stdin: Path | None = None,
        seconds: float = 120.0,
    ) -> None:
        """Run a process to its end; ServerFailedError unless it exits with 0."""
        self.start(command, environ=environ, stdin=stdin)
        wait_until(lambda: self.poll() is not None, seconds=seconds)
        if self.poll() != 0:
            self.fail(Path(command[0]).name)

    def poll(self) -> int | None:
        """The process's exit code; None while it runs."""
        code: int | None = self._companion.ask("poll")
        return code

    def send(self, signal_name: str) -> None:
        """Send the process a signal."""
        self._companion.ask("send", name=signal_name)

    def end(self, signals: Sequence[tuple[str, float]]) -> None:
        """End the process: each signal in turn with its patience in seconds, then SIGKILL."""
        self._companion.ask("end", signals=list(signals))

    def close(self) -> None:
        """End the process and remove the folder; returns when both are gone."""
        self._companion.close()
        shutil.rmtree(self.path, ignore_errors=True)  # in case somebody has killed the guard

    def log_size(self) -> int:
        """How much has been logged, for `log_since`."""
        return self.log.stat().st_size if self.log.exists() else 0

    def log_since(self, start: int) -> str:
        """What has been logged since then."""
        with contextlib.suppress(FileNotFoundError), self.log.open("rb") as lines:
            lines.seek(start)
            return lines.read().decode(errors="replace")
        return ""

    def fail(self, what: str, *, since: int = 0) -> NoReturn:
        """Raise ServerFailedError with the errors and the end of the log."""
        lines = self.log_since(since).strip().splitlines() or ["(nothing)"]
        complaints = [line for line in lines[:-_LOG_TAIL] if _COMPLAINT.search(line)]
        quoted = "\n  ".join([*complaints[:_LOG_TAIL], *lines[-_LOG_TAIL:]])
        message = f"{what} failed to start or to do its work; its log says:\n  {quoted}"
        raise ServerFailedError(message)


def plain_environment() -> dict[str, str]:
    """For servers, instead of ours: PGPORT, LISTENER_URL and their like would change what starts."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
