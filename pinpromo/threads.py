"""Threads beside the main one, which leave signals to it."""

import signal
import threading
from collections.abc import Callable

# Those that stop a process.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def leave_signals() -> None:
    """Keep SIGNALS from the current thread: the main thread alone decides about a stop."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def start(name: str, target: Callable[[], object]) -> threading.Thread:
    """Run `target` in a daemon thread that leaves signals to the main one."""

    def run() -> None:
        leave_signals()
        target()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
