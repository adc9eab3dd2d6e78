"""What a monitoring system and an orchestrator ask of the programs, and whether they answer whatever else is broken."""

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from chaos.parts import Part
from chaos.verdict import Verdict
from devstack.ports import HOST

PATIENCE = 10.0  # seconds
ALLOWED: Mapping[str, frozenset[int]] = {
    "/healthz": frozenset({200}),
    "/readyz": frozenset({200, 503}),
    "/metrics": frozenset({200}),
}


@dataclass(frozen=True, slots=True)
class Probe:
    """One question; status 0: no answer. From `start` to `end` on the wall clock."""

    program: str
    path: str
    start: float
    end: float
    status: int


class Prober:
    """Asks the programs in turn."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        self._ports = ports
        self.probes: list[Probe] = []

    def act(self, dice: random.Random) -> None:
        """Ask one program one thing."""
        program, path = dice.choice(sorted(self._ports)), dice.choice(sorted(ALLOWED))
        start = time.time()
        status = _get(self._ports[program], path)
        self.probes.append(Probe(program, path, start, time.time(), status))


def _get(port: int, path: str) -> int:
    connection = HTTPConnection(HOST, port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        return response.status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()


def check(probes: list[Probe], programs: Mapping[str, Part], verdict: Verdict) -> None:
    """Judge each answer; a program that a fault has taken out of service need not give one."""
    breaches = [
        f"{probe.program}{probe.path} gave {probe.status or 'no answer'} after {probe.end - probe.start:.1f} s"
        f" at {probe.start:.1f}"
        for probe in probes
        if probe.status not in ALLOWED[probe.path] and not (probe.status == 0 and _was_out(probe, programs))
    ]
    verdict.judge("every program at work answers its probes", breaches)
    statuses = Counter(probe.status for probe in probes)
    verdict.figures.append(
        "probes: " + ", ".join(f"{count} x {status or 'none'}" for status, count in statuses.items())
    )


def _was_out(probe: Probe, programs: Mapping[str, Part]) -> bool:
    absences = programs[probe.program].out_of_service
    return any(start < probe.end and probe.start < end for start, end in absences)
