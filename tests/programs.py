"""manage.py as real processes against the test database."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import quote

from django.db import connection

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60.0  # seconds: generous, for loaded machines


def database_url(**changes):
    """The address of the test database; `port` or `host` may be another, such as a proxy's."""
    parts = connection.settings_dict | {key.upper(): value for key, value in changes.items()}
    host = parts["HOST"] or "127.0.0.1"
    return (
        f"postgres://{quote(parts['USER'])}:{quote(parts['PASSWORD'], safe='')}@{host}:{parts['PORT']}/{parts['NAME']}"
    )


def environment(**changes):
    """The environment of a program: the test database, no `.env`; None unsets a variable."""
    variables = os.environ | {"DATABASE_URL": database_url(), "SECRET_KEY": "x" * 50, "PINPROMO_ENV_FILE": ""}
    variables |= {"PYTHONWARNINGS": "error", "EXPIRE_PROMOTIONS_MIN_INTERVAL": "0.01"} | changes
    return {name: str(value) for name, value in variables.items() if value is not None}


def manage(*arguments, timeout=PATIENCE, **changes):
    """Run manage.py to its end; return the completed process, its output as text."""
    return subprocess.run(
        [sys.executable, "manage.py", *map(str, arguments)],
        cwd=ROOT, env=environment(**changes), timeout=timeout, capture_output=True, text=True, check=False,
    )  # fmt: skip


class Program:
    """A running manage.py whose output can be waited for. A context manager: kills the process at the end."""

    def __init__(self, *arguments, stdout=subprocess.PIPE, prefix=(), **changes):
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "manage.py", *map(str, arguments)],
            cwd=ROOT, env=environment(**changes), stdout=stdout, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines = []  # stdout and stderr, as they came
        self._queue = queue.Queue()
        self._threads = [
            threading.Thread(target=self._read, args=(stream,), daemon=True)
            for stream in (self.process.stdout, self.process.stderr)
            if stream
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, stream):
        with stream:
            for line in stream:
                self._queue.put(line.rstrip("\n"))

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self._drain()

    def wait_for(self, pattern, timeout=PATIENCE):
        """Return the next line that `pattern` is found in; fail if none comes."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self._queue.get(timeout=max(0.001, min(0.2, deadline - time.monotonic())))
            except queue.Empty:
                if self.process.poll() is None and time.monotonic() < deadline:
                    continue
                if self._queue.empty():
                    raise AssertionError(f"{pattern!r} did not come; exit code {self.process.poll()}; "
                                         "so far:\n" + "\n".join(self.lines)) from None  # fmt: skip
                continue
            self.lines.append(line)
            if re.search(pattern, line):
                return line

    def stop(self, number=signal.SIGTERM, timeout=PATIENCE):
        """Send a signal; return the exit code."""
        self.process.send_signal(number)
        return self.wait(timeout)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=PATIENCE):
        """Wait for the end; return the exit code."""
        code = self.process.wait(timeout)
        self._drain()
        return code

    def count(self, pattern):
        """How many lines so far hold `pattern`."""
        self._drain(join=False)
        return sum(bool(re.search(pattern, line)) for line in self.lines)

    def _drain(self, *, join=True):
        if join:
            for thread in self._threads:
                thread.join(10)
        while not self._queue.empty():
            self.lines.append(self._queue.get())


def eventually(condition, timeout=PATIENCE, every=0.02):
    """Return the first true value of `condition()`; fail if none comes."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(every)
    return value
