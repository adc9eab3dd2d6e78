"""What every embedded server shares: free ports, waiting until it answers, stopping, failing on purpose."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

from devstack.errors import DevstackError
from devstack.guarded import GuardedFolder, plain_environment
from devstack.ports import HOST, free_port, wait_until

_PORT_TAKEN = ("address already in use", "address in use", "could not bind")
_PORT_ATTEMPTS = 5
_PORT_PAUSE = 0.3


class EmbeddedServer(ABC):
    """One server process behind a guard; it ends with whoever started it, whatever ends that.

    `start` after `halt` or `kill` brings it back on the same ports with the same files; `stop` is the end and
    removes its folder.
    """

    name: ClassVar[str]
    port_count: ClassVar[int] = 1
    start_seconds: ClassVar[float] = 30.0
    # Signals that end the server, each with the seconds it is given before the next; SIGKILL comes last.
    stop_signals: ClassVar[Sequence[tuple[str, float]]] = (("SIGTERM", 10.0),)

    def __init__(self) -> None:
        self._guarded: GuardedFolder | None = None
        self._ports: list[int] = []
        self._pid = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def guarded(self) -> GuardedFolder:
        """The folder and the process; DevstackError before `start` and after `stop`."""
        if self._guarded is None:
            message = f"{self.name} has not been started"
            raise DevstackError(message)
        return self._guarded

    @property
    def port(self) -> int:
        """The port that clients connect to."""
        return self._ports[0] if self.guarded else 0

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The server's (first) process."""
        return self._pid if self.guarded else 0

    @property
    def log(self) -> Path:
        """Everything the server has printed."""
        return self.guarded.log

    def is_running(self) -> bool:
        """Whether the server's process is there."""
        return self._guarded is not None and bool(self._pid) and self._guarded.poll() is None

    def start(self) -> None:
        """Start and wait until it answers. If the first start fails, nothing is left behind."""
        if self.is_running():
            return
        fresh = self._guarded is None
        try:
            if fresh:
                self._guarded = self._open()
                self._prepare()
            self._start_on_some_port()
        except BaseException:
            if fresh:
                self.stop()
            raise

    def stop(self) -> None:
        """End the server and remove its folder. Once is enough, more does no harm."""
        if self._guarded is not None:
            with contextlib.suppress(DevstackError):  # the guard may have been killed
                self._clean_up()
            self._guarded.close()
            self._guarded, self._ports, self._pid = None, [], 0

    def halt(self) -> None:
        """Stop the server, keep its files and ports for the next `start`."""
        self.guarded.end(self.stop_signals)

    def restart(self) -> None:
        """Stop and start again: same ports, same files."""
        self.halt()
        self.start()

    def kill(self) -> None:
        """SIGKILL, as the kernel does when memory runs out."""
        self.guarded.end([])

    def suspend(self) -> None:
        """SIGSTOP: connections stay open, the process does not answer."""
        self.guarded.send("SIGSTOP")

    def resume(self) -> None:
        """SIGCONT, the end of `suspend`."""
        self.guarded.send("SIGCONT")

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """Program and arguments, for the ports chosen."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether it serves clients by now."""

    def _open(self) -> GuardedFolder:
        return GuardedFolder(self.name, signals=self.stop_signals)

    def _prepare(self) -> None:  # noqa: B027 (a hook: most servers have nothing to do here)
        """Fill the fresh folder."""

    def _clean_up(self) -> None:  # noqa: B027
        """Give back what neither the server nor the guard will."""

    def _environment(self) -> Mapping[str, str]:
        return plain_environment()

    def _start_on_some_port(self) -> None:
        """Somebody else may take the port before the server does: then another one, or the kept one later."""
        kept = bool(self._ports)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            if not kept:
                self._ports = [free_port() for _ in range(self.port_count)]
            before = self.guarded.log_size()
            if self._start_once():
                return
            taken = any(text in self.guarded.log_since(before).lower() for text in _PORT_TAKEN)
            if not taken or attempt == _PORT_ATTEMPTS:
                self.guarded.fail(self.name, since=before)
            wait_until(lambda: False, seconds=_PORT_PAUSE)

    def _start_once(self) -> bool:
        self._pid = self.guarded.start(self._command(), environ=self._environment())
        wait_until(lambda: not self.is_running() or self._answers(), seconds=self.start_seconds)
        answers = self.is_running() and self._answers()
        if not answers:
            self.kill()
        return answers
