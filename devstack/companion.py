"""A process of ours that answers JSON lines, and ends itself when its standard input ends."""

import json
import os
import subprocess
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from devstack.errors import DevstackError

_companions: weakref.WeakSet["Companion"] = weakref.WeakSet()


class Companion:
    """The owner's end: asks, waits for the answer, hangs up.

    It lives in a session of its own, so that Ctrl-C in the terminal reaches the owner alone.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._lock = threading.Lock()
        self._asked = 0
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # whoever waits for our own stderr to end must not wait for it
            start_new_session=True,
            bufsize=0,
        )
        self._owner = os.getpid()
        _companions.add(self)
        self.greeting = self._answer(0)

    @property
    def pid(self) -> int:
        """The companion's process id."""
        return self._process.pid

    def ask(self, do: str, **arguments: Any) -> Any:
        """Have `do` done over there; its result, or DevstackError with its reason."""
        with self._lock:
            self._asked += 1
            request = json.dumps({"id": self._asked, "do": do, **arguments}) + "\n"
            try:
                self._pipes()[0].write(request.encode())
            except (OSError, ValueError) as error:
                message = f"a companion process of the development stack is gone ({error})"
                raise DevstackError(message) from error
            return self._answer(self._asked)

    def close(self) -> None:
        """Hang up and wait until it has ended."""
        if os.getpid() != self._owner:
            return
        for pipe in self._pipes():
            pipe.close()
        self._process.wait()

    def hang_up_in_fork(self) -> None:
        """Close the pipes that a fork has inherited: they would keep the companion alive after its owner."""
        for pipe in self._pipes():
            pipe.close()

    def _answer(self, number: int) -> Any:
        for line in iter(self._pipes()[1].readline, b""):
            reply = json.loads(line)
            if reply["id"] < number:  # the answer to a request whose asker was interrupted
                continue
            if "error" in reply:
                raise DevstackError(reply["error"])
            return reply["result"]
        message = "a companion process of the development stack has ended unexpectedly"
        raise DevstackError(message)

    def _pipes(self) -> tuple[Any, Any]:
        return self._process.stdin, self._process.stdout


def _hang_up_in_fork() -> None:
    for companion in list(_companions):
        companion.hang_up_in_fork()


os.register_at_fork(after_in_child=_hang_up_in_fork)
