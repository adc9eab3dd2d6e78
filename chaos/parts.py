"""The product's processes and the consumers: each in a guard of its own, started again whenever it has ended."""

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from devstack.guarded import GuardedFolder

STOP_SECONDS = 25.0  # the programs' own grace of 10 s, and what interrupting a dead network takes
START_SECONDS = 5.0  # a started program counts as at work after this time


class Part:
    """One process that is meant to run for ever. Everything it prints is kept over all its lives."""

    def __init__(self, name: str, command: Sequence[str | Path], environ: Mapping[str, str]) -> None:
        self.name = name
        self.command = command
        self.environ = dict(environ)
        self._lock = threading.RLock()
        self._folder = GuardedFolder(name, signals=(("SIGTERM", STOP_SECONDS),))
        self.pid = 0
        self.starts = 0
        self.out_of_service: list[tuple[float, float]] = []  # wall clock
        self.memory: list[list[tuple[float, float]]] = []  # per life: wall clock, megabytes
        self.complaints: list[str] = []
        self._down_since: float | None = None

    def start(self) -> None:
        """Start the next life."""
        with self._lock:
            self._down()
            self.pid = self._folder.start(self.command, environ=self.environ)
            self.starts += 1
            self.memory.append([])
            self._up(time.time() + START_SECONDS)

    def kill(self) -> None:
        """SIGKILL to the process and its children, and start it again."""
        with self._lock:
            self._down()
            children = self._children()
            self._folder.end([])
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            psutil.wait_procs(children, timeout=10)
            self.start()

    def terminate(self, *, again: bool = True) -> None:
        """SIGTERM, after which it must exit with 0 in time; start it again."""
        with self._lock:
            self._down()
            began = time.monotonic()
            self._folder.end((("SIGTERM", STOP_SECONDS),))
            if (code := self._folder.poll()) != 0:
                waited = time.monotonic() - began
                self.complaints.append(f"{self.name} exited with {code} {waited:.1f} s after SIGTERM{self._tail()}")
            if again:
                self.start()

    def suspend(self, seconds: float) -> None:
        """SIGSTOP for so long."""
        with self._lock:
            self._down()
            processes = self.family()
            _each(processes, "suspend")
            time.sleep(seconds)
            _each(processes, "resume")
            self._up(time.time())

    def look_after(self) -> None:
        """Note the memory; start it again if it has ended by itself, which it never should."""
        if not self._lock.acquire(blocking=False):
            return  # a fault is at work on it
        try:
            if (code := self._folder.poll()) is not None:
                self.complaints.append(f"{self.name} ended by itself with exit code {code}{self._tail()}")
                self._down()
                self.start()
            self.memory[-1].append((time.time(), self._megabytes()))
        finally:
            self._lock.release()

    def close(self) -> None:
        """End it and remove its folder."""
        self._folder.close()

    def output(self) -> str:
        """All it has printed, in all its lives."""
        return self._folder.log_since(0)

    @property
    def folder(self) -> Path:
        """Where it may keep files from one life to the next."""
        return self._folder.path

    def _down(self) -> None:
        if self._down_since is None:
            self._down_since = time.time()

    def _up(self, at: float) -> None:
        if self._down_since is not None:
            self.out_of_service.append((self._down_since, at))
            self._down_since = None

    def family(self) -> list[psutil.Process]:
        """Its process and all that this has started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return [psutil.Process(self.pid), *self._children()]
        return []

    def _children(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def _megabytes(self) -> float:
        total = 0
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total / 1e6

    def _tail(self) -> str:
        return "".join(f"\n      {line[:300]}" for line in self.output().splitlines()[-4:])


def _each(processes: Sequence[psutil.Process], act: str) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            getattr(process, act)()


def common_absences(parts: Sequence[Part]) -> list[tuple[float, float]]:
    """Return the times in which every one of `parts` was out of service."""
    common = parts[0].out_of_service
    for part in parts[1:]:
        pairs = [
            (max(start, other_start), min(end, other_end))
            for start, end in common
            for other_start, other_end in part.out_of_service
        ]
        common = [(start, end) for start, end in pairs if start < end]
    return common
