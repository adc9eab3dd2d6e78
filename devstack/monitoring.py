"""Prometheus and Alertmanager with the configuration of `deploy/`, all its durations shortened by one factor.

So that what takes minutes in production is seen in seconds: at the factor 20 a tick comes every 3 s, a scrape every
0.75 s, and an alert that waits for 5 minutes waits for 15 s. Nothing else of the files changes.
"""

import contextlib
import json
import re
import shutil
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from devstack.errors import MissingToolError
from devstack.program import ROOT
from devstack.server import EmbeddedServer

DEPLOY = ROOT / "deploy"
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}

_DURATION = re.compile(r"\b(\d+)(ms|s|m|h|d)\b")
# A number of seconds that a metric measured in seconds is compared with.
_SECONDS_LIMIT = re.compile(r"(_seconds\)+ [<>] )(\d+)")


class Prometheus(EmbeddedServer):
    """Scrapes `targets` (job: address), evaluates the rules of `deploy/`, and alerts `alertmanager`."""

    name = "Prometheus"

    def __init__(self, targets: Mapping[str, str], *, alertmanager: str, factor: float) -> None:
        super().__init__()
        self._targets = targets
        self._alertmanager = alertmanager
        self._factor = factor

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The instant vector that `expression` gives now."""
        found: list[dict[str, Any]] = self._ask("query", query=expression)["result"]
        return found

    def query_range(self, expression: str, *, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """The series that `expression` gives, `start` and `end` in seconds since 1970."""
        found: list[dict[str, Any]] = self._ask("query_range", query=expression, start=start, end=end, step=step)[
            "result"
        ]
        return found

    def firing(self) -> set[str]:
        """The names of the alerts that fire now."""
        return {alert["labels"]["alertname"] for alert in self._ask("alerts")["alerts"] if alert["state"] == "firing"}

    def _ask(self, what: str, **parameters: object) -> Any:
        address = f"http://{self.address}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(address, timeout=10) as response:
            return json.load(response)["data"]

    def _prepare(self) -> None:
        rules = self.guarded.path / "rules"
        rules.mkdir()
        for path in sorted((DEPLOY / "prometheus/rules").glob("*.yml")):
            (rules / path.name).write_text(shorten_rules(path.read_text(), self._factor))
        config = yaml.safe_load(shorten((DEPLOY / "prometheus/prometheus.yml").read_text(), self._factor))
        for job in config["scrape_configs"]:
            job["static_configs"] = [{"targets": [self._targets[job["job_name"]]]}]
        config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [self._alertmanager]}]}]
        (self.guarded.path / "prometheus.yml").write_text(yaml.safe_dump(config))

    def _command(self) -> Sequence[str | Path]:
        return [
            find("prometheus", package="prometheus"),
            f"--config.file={self.guarded.path / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.guarded.path / 'tsdb'}",
            f"--web.listen-address={self.address}",
        ]

    def _answers(self) -> bool:
        return is_ready(self.address)


class Alertmanager(EmbeddedServer):
    """Routes alerts as `deploy/` says, but all of them to one webhook."""

    name = "Alertmanager"

    def __init__(self, webhook: str, *, factor: float) -> None:
        super().__init__()
        self._webhook = webhook
        self._factor = factor

    def _prepare(self) -> None:
        config = yaml.safe_load(shorten((DEPLOY / "alertmanager/alertmanager.yml").read_text(), self._factor))
        for receiver in config["receivers"]:
            for hook in receiver["webhook_configs"]:
                hook["url"] = self._webhook
        (self.guarded.path / "alertmanager.yml").write_text(yaml.safe_dump(config))

    def _command(self) -> Sequence[str | Path]:
        return [
            find("prometheus-alertmanager", "alertmanager", package="prometheus-alertmanager"),
            f"--config.file={self.guarded.path / 'alertmanager.yml'}",
            f"--storage.path={self.guarded.path / 'data'}",
            f"--web.listen-address={self.address}",
            "--cluster.listen-address=",
        ]

    def _answers(self) -> bool:
        return is_ready(self.address)


def find(*names: str, package: str) -> str:
    """The path of the first of these programs that is installed. Raises MissingToolError."""
    for name in names:
        if path := shutil.which(name):
            return path
    message = f"{names[0]} is not installed (Debian: apt-get install {package})"
    raise MissingToolError(message)


def is_ready(address: str) -> bool:
    """Whether the server says that it is ready."""
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/-/ready", timeout=2) as response:
        return bool(response.status == 200)
    return False


def shorten(text: str, factor: float) -> str:
    """Divide every duration in `text` (such as `5m`) by `factor`."""
    return _DURATION.sub(lambda found: f"{int(found[1]) * SECONDS[found[2]] * 1000 / factor:.0f}ms", text)


def shorten_rules(text: str, factor: float) -> str:
    """Divide every duration of the rules by `factor`: windows, `for`, and limits of what is measured in seconds."""
    rules = yaml.safe_load(text)
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule["for"] = shorten(rule["for"], factor)
            rule["expr"] = shorten_expression(rule["expr"], factor)
    return str(yaml.safe_dump(rules, sort_keys=False))


def shorten_expression(expression: str, factor: float) -> str:
    """Divide the windows, and the limits that are seconds, by `factor`."""
    limited = _SECONDS_LIMIT.sub(lambda found: f"{found[1]}{int(found[2]) / factor:g}", expression)
    return re.sub(r"\[\w+\]", lambda found: shorten(found[0], factor), limited)
