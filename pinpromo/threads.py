"""Threads beside the main one, which leave signals to it."""

import signal
import threading
from collections.abc import Callable

# Those that stop a process.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def start(name: str, target: Callable[[], object]) -> threading.Thread:
    """Run `target` in a daemon thread that none of SIGNALS reaches: the main thread alone decides about a stop."""

    def run() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        target()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
