"""The three processes of the product, watched by Prometheus and Alertmanager, with all intervals shortened."""

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from devstack.monitoring import Alertmanager, Prometheus
from devstack.ports import HOST, free_port
from devstack.program import ROOT, Program, manage

INTERVAL = 60.0  # seconds from tick to tick in production


class Webhook:
    """Receives what Alertmanager sends: a list of (alert, status), in the order in which they came."""

    def __init__(self) -> None:
        self.received: list[tuple[str, str]] = []
        self.alerts: list[dict[str, Any]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.alerts += sent["alerts"]
                hook.received += [(alert["labels"]["alertname"], alert["status"]) for alert in sent["alerts"]]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_arguments: object) -> None:
                """Stay silent."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self.address = f"http://{HOST}:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class MonitoredSystem:
    """A context manager: on entry everything runs; `environ` says where database and broker are."""

    def __init__(self, environ: Mapping[str, str], *, factor: float) -> None:
        interval = str(INTERVAL / factor)
        self._environ = {
            **environ,
            "EXPIRE_PROMOTIONS_MIN_INTERVAL": interval,
            "EXPIRE_PROMOTIONS_INTERVAL": interval,
        }
        self._factor = factor
        self._running = ExitStack()
        self._ports = {job: free_port() for job in ("pinpromo-web", "pinpromo-expire", "pinpromo-relay")}

    def __enter__(self) -> Self:
        self.webhook = self._running.enter_context(Webhook())
        self.start_worker()
        self.relay = self._start_loop("relay_outbox", "pinpromo-relay")
        self.web = self._running.enter_context(_web(self._ports["pinpromo-web"], self._environ))
        alertmanager = self._running.enter_context(Alertmanager(self.webhook.address, factor=self._factor))
        targets = {job: f"{HOST}:{port}" for job, port in self._ports.items()}
        self.prometheus = self._running.enter_context(
            Prometheus(targets, alertmanager=alertmanager.address, factor=self._factor)
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.resume_relay()
        self._running.close()

    def start_worker(self) -> None:
        """Start the expiry worker, for the first time or again on the same port."""
        self.worker = self._start_loop("expire_promotions", "pinpromo-expire")

    def kill_worker(self) -> None:
        """SIGKILL."""
        os.kill(self.worker.pid, signal.SIGKILL)

    def suspend_relay(self) -> None:
        """SIGSTOP: it is there, and does nothing."""
        os.kill(self.relay.pid, signal.SIGSTOP)

    def resume_relay(self) -> None:
        """The end of `suspend_relay`."""
        os.kill(self.relay.pid, signal.SIGCONT)

    def _start_loop(self, command: str, job: str) -> Program:
        program = manage(command, command, "--loop", f"--ops-port={self._ports[job]}", environ=self._environ)
        return self._running.enter_context(program)


def _web(port: int, environ: Mapping[str, str]) -> Program:
    gunicorn = Path(sys.executable).parent / "gunicorn"
    options = (f"--bind={HOST}:{port}", "--threads=4", f"--chdir={ROOT}")
    return Program("web", gunicorn, "pinpromo.wsgi", *options, environ=environ)
