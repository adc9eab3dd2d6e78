"""The small HTTP server of a looping command: `/metrics`, `/healthz`, `/readyz`."""

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.core.management import CommandError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from pinpromo import threads
from pinpromo.pulse import Pulse


def serve(port: int, pulse: Pulse) -> None:
    """Serve in the background, on every address of the machine, until the process ends.

    Raises CommandError when the port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = 10
        server_version = "pinpromo"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._answer(HTTPStatus.OK, generate_latest(), CONTENT_TYPE_LATEST)
            elif self.path == "/healthz":
                self._answer_state(pulse.alive)
            elif self.path == "/readyz":
                self._answer_state(pulse.alive and pulse.ready)
            else:
                self._answer(HTTPStatus.NOT_FOUND, b"not found\n")

        def _answer_state(self, good: bool) -> None:
            if good:
                self._answer(HTTPStatus.OK, b"ok\n")
            else:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"unavailable\n")

        def _answer(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            """Stay silent: scrapes are not worth a log line."""

    try:
        server = ThreadingHTTPServer(("", port), Handler)
    except OSError as error:
        raise CommandError(
            f"port {port} cannot be served ({error.strerror}); choose another with --ops-port"
        ) from error
    server.daemon_threads = True
    threads.start("ops", server.serve_forever)
