"""`python -m devstack run -- COMMAND`: a command with the servers it needs around it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from devstack import guard, stack


def run(command: Sequence[str], *, real_kafka: bool = False) -> int:
    """Run the command with the stack's variables; its exit code (128 + n if signal n ended it)."""
    with stack.running(real_kafka=real_kafka) as servers:
        print(f"PostgreSQL: {servers.database}\nBroker: {servers.broker}", file=sys.stderr, flush=True)
        code = _run_to_end(command, {**os.environ, **servers.variables})
    return code if code >= 0 else 128 - code


def _run_to_end(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Wait, also through Ctrl-C (it reaches the command by itself) and SIGTERM (which is passed on)."""
    process = subprocess.Popen(command, env=environ, preexec_fn=_die_with_parent(os.getpid()))
    kept = {
        signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: process.terminate()),
    }
    try:
        return process.wait()
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _die_with_parent(parent: int) -> Callable[[], None]:
    return lambda: guard.die_with_parent(parent, signal.SIGTERM)
