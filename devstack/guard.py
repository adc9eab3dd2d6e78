"""The guard: a small process that ends a server, and removes its folder, once its owner is gone.

The owner starts this file as a process of its own and holds the other end of its standard input. However the
owner ends (return, exception, Ctrl-C, SIGKILL, power cord of the terminal), the kernel closes that pipe; the
guard reads the end of the file, stops the server politely, then less politely, and removes the folder.

A pipe, because nothing else holds everywhere: PR_SET_PDEATHSIG is Linux only, follows the parent *thread*,
and is cleared when a process changes its user. The guard has one thread and sets that signal last, so on
Linux even a SIGKILL of the guard does not leave the server behind.

The file imports the standard library only and is run by path: it is up in some 30 ms.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
# After a SIGKILL of PostgreSQL's first process the others need a moment to notice.
REMOVAL_ATTEMPTS = 50
REMOVAL_PAUSE = 0.1

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class Guard:
    """Holds at most one server process and at most one folder."""

    def __init__(self, *, signals: list[tuple[str, float]], parent: str, prefix: str, owner: list[int]) -> None:
        self.signals = signals
        self.server: subprocess.Popen[bytes] | None = None
        self.folder = tempfile.mkdtemp(prefix=prefix, dir=parent) if prefix else ""
        if self.folder and owner:
            os.chown(self.folder, owner[0], owner[1])

    def start(self, *, argv: list[str], env: dict[str, str], cwd: str, stdin: str, log: str, owner: list[int]) -> int:
        """Start the server as `owner` (user and group), its output appended to the log."""
        user: dict[str, Any] = {"user": owner[0], "group": owner[1], "extra_groups": []} if owner else {}
        with Path(log).open("ab") as output, Path(stdin).open("rb") as source:
            self.server = subprocess.Popen(
                argv,
                env=env,
                cwd=cwd,
                stdin=source,
                stdout=output,
                stderr=output,
                preexec_fn=self._die_with_guard(),  # runs after the change of user, which would clear it
                **user,
            )
        return self.server.pid

    def poll(self) -> int | None:
        """The server's exit code; None while it runs."""
        return self.server.poll() if self.server else 0

    def send(self, *, name: str) -> int | None:
        """Send one signal to the server, if it still runs."""
        if self.server and self.server.poll() is None:
            self.server.send_signal(getattr(signal, name))
        return self.poll()

    def end(self, *, signals: list[tuple[str, float]]) -> int | None:
        """Stop the server: each signal in turn with its patience in seconds, then SIGKILL."""
        for name, patience in [*signals, ("SIGKILL", 30.0)]:
            self.send(name=name)
            self.send(name="SIGCONT")  # a suspended server would not notice
            with contextlib.suppress(subprocess.TimeoutExpired):
                if self.server:
                    self.server.wait(patience)
                break
        return self.poll()

    def close(self) -> None:
        """End the server and remove the folder."""
        self.end(signals=self.signals)
        for _ in range(REMOVAL_ATTEMPTS):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.lexists(self.folder):
                return
            time.sleep(REMOVAL_PAUSE)

    def _die_with_guard(self) -> Callable[[], None]:
        guard, number = os.getpid(), getattr(signal, self.signals[0][0] if self.signals else "SIGKILL")
        return lambda: die_with_parent(guard, number)


def die_with_parent(parent: int, number: int) -> None:
    """In a fresh child: have the kernel send it this signal when the parent is gone. Linux only.

    The parent must start the child from its main thread.
    """
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)


def serve(guard: Guard) -> None:
    """Answer one JSON request a line until the owner hangs up."""
    for line in sys.stdin:
        request = json.loads(line)
        number, name = request.pop("id"), request.pop("do")
        try:
            reply = {"id": number, "result": getattr(guard, name)(**request)}
        except (OSError, subprocess.SubprocessError) as error:
            reply = {"id": number, "error": str(error)}
        print(json.dumps(reply), flush=True)


def main() -> None:
    """Guard until standard input ends, or until SIGTERM."""
    # Handlers, not SIG_IGN: that would be inherited by the server (a JVM then never sees SIGINT).
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    guard = Guard(**json.loads(sys.argv[1]))
    try:
        print(json.dumps({"id": 0, "result": guard.folder}), flush=True)
        with contextlib.suppress(BrokenPipeError):
            serve(guard)
    finally:
        signal.signal(signal.SIGTERM, lambda *_: None)
        guard.close()


if __name__ == "__main__":
    main()
