"""The web process as it is deployed: gunicorn, against the test database."""

import contextlib
import subprocess
import sys
import time
from http.client import HTTPConnection

from devstack.ports import free_port
from tests.programs import PATIENCE, ROOT, environment

HOST = "pinpromo.example.com"


def send(port, method, path, **headers):
    """Send one request; return the status."""
    with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request(method, path, headers={"Host": HOST} | headers)
        return connection.getresponse().status


@contextlib.contextmanager
def gunicorn(log=None, **changes):
    """Run the web process, its log going to the file `log`; yield its port."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "pinpromo.wsgi", f"--bind=127.0.0.1:{port}", "--threads=4"]
    variables = environment(**{"PYTHONWARNINGS": None, "ALLOWED_HOSTS": f"{HOST},127.0.0.1"} | changes)
    process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=log, stderr=log)
    try:
        _await(process, port)
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _await(process, port):
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(OSError):
            send(port, "GET", "/healthz")
            return
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
