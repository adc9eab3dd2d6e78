"""PinPromo's own processes, as children that end with their owner."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devstack.errors import DevstackError
from devstack.guarded import GuardedFolder

ROOT = Path(__file__).resolve().parent.parent
MANAGE = ROOT / "manage.py"
# SIGTERM, and then more than the programs' own grace.
STOP_SIGNALS = (("SIGTERM", 20.0),)


class Program:
    """One running process of the product; `stop` lets it finish its work in hand."""

    def __init__(self, name: str, *command: str | Path, environ: Mapping[str, str]) -> None:
        self.name = name
        self._folder = GuardedFolder(name, signals=STOP_SIGNALS)
        self.pid = self._folder.start(command, environ={**os.environ, **environ})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.close()

    def stop(self) -> None:
        """End it by SIGTERM. Raises DevstackError unless it exits with 0."""
        self._folder.end(STOP_SIGNALS)
        if code := self._folder.poll():
            message = f"{self.name} ended with exit code {code}; the end of its log:\n{self._tail()}"
            raise DevstackError(message)

    def check(self) -> None:
        """Raise DevstackError if it has ended by itself."""
        if (code := self._folder.poll()) is not None:
            message = f"{self.name} has ended with exit code {code}; the end of its log:\n{self._tail()}"
            raise DevstackError(message)

    def results(self) -> Iterator[dict[str, Any]]:
        """The JSON objects that it has printed as results (its log lines carry an `event`)."""
        for line in self._folder.log_since(0).splitlines():
            if line.startswith("{") and "event" not in (found := json.loads(line)):
                yield found

    def _tail(self) -> str:
        return "\n".join(f"  {line}" for line in self._folder.log_since(0).splitlines()[-8:])


def manage(name: str, *arguments: str, environ: Mapping[str, str]) -> Program:
    """Start `manage.py` with `arguments`."""
    return Program(name, sys.executable, MANAGE, *arguments, environ=environ)


def manage_to_end(*arguments: str, environ: Mapping[str, str]) -> None:
    """Run `manage.py` with `arguments` to its end. Raises DevstackError unless it exits with 0."""
    folder = GuardedFolder(arguments[0])
    try:
        folder.run([sys.executable, MANAGE, *arguments], environ={**os.environ, **environ})
    finally:
        folder.close()
