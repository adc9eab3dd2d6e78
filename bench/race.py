"""Programs that start together: each says when it is ready, waits for the start, and says when it is done."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import IO

READY, DONE = "ready\n", "done\n"


def race(*commands: Sequence[str], environ: Mapping[str, str] = MappingProxyType({})) -> float:
    """Run the programs side by side; return the seconds from the common start until the last one is done."""
    with ExitStack() as running:
        runners = [running.enter_context(_started(command, environ)) for command in commands]
        for runner in runners:
            _await(READY, runner)
        started = time.perf_counter()
        for runner in runners:
            stdin = _pipe(runner.stdin)
            stdin.write("go\n")
            stdin.flush()
        for runner in runners:
            _await(DONE, runner)
        return time.perf_counter() - started


def module(name: str, *arguments: str, python: str = sys.executable) -> Sequence[str]:
    """Return the command that runs a module of the benchmarks."""
    return [python, "-m", name, *arguments]


@contextmanager
def timed_by_owner() -> Iterator[None]:
    """In such a program: wait for the start before the block, and report its end."""
    sys.stdout.write(READY)
    sys.stdout.flush()
    sys.stdin.readline()
    yield
    sys.stdout.write(DONE)
    sys.stdout.flush()


@contextmanager
def _started(command: Sequence[str], environ: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    everything = {**os.environ, **environ}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=everything, stdin=pipe, stdout=pipe, text=True) as program:
        try:
            yield program
        except BaseException:
            program.kill()
            raise
        program.communicate(timeout=60)


def _await(line: str, program: subprocess.Popen[str]) -> None:
    for said in _pipe(program.stdout):
        if said == line:
            return
    raise RuntimeError(f"{program.args!r} has ended with {program.wait()} before it said {line.strip()!r}")


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
