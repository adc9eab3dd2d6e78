"""What the processes cost when they do nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

from bench.figures import Figure

# Seconds of CPU and bytes of memory once everything is imported.
PROBE = (
    "import resource, psutil;"
    "print(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]), psutil.Process().memory_info().rss)"
)
BARE = "import django; django.setup()"
PROGRAMS = {
    "worker": f"{BARE}; import promotion.management.commands.expire_promotions",
    "relay": f"{BARE}; import outbox.management.commands.relay_outbox",
    "web": "import pinpromo.wsgi; import pinpromo.urls",
}


def measure(_url: str, *, rounds: int) -> Iterator[Figure]:
    """Yield start-up time and memory of each program."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ("bare", *PROGRAMS)}
    for _ in range(rounds):
        for name, readings in taken.items():
            readings.append(_probe(PROGRAMS.get(name, BARE)))
    seconds = {name: statistics.median(one[0] for one in readings) for name, readings in taken.items()}
    memory = {name: statistics.median(one[1] for one in readings) / 2**20 for name, readings in taken.items()}
    for name in PROGRAMS:
        against = "`django.setup()`"
        detail = f"{seconds[name] * 1e3:.0f} ms, bare {seconds['bare'] * 1e3:.0f} ms of CPU"
        yield Figure(f"import time of the {name}", seconds[name] / seconds["bare"], 1.5, 1.1, against, detail)
        detail = f"{memory[name]:.1f} MiB, bare {memory['bare']:.1f} MiB"
        yield Figure(f"idle memory of the {name}", memory[name] / memory["bare"], 1.5, 1.1, against, detail)


def _probe(code: str) -> tuple[float, float]:
    run = subprocess.run([sys.executable, "-c", f"{code}; {PROBE}"], capture_output=True, text=True, check=True)
    cpu, rss = run.stdout.split()
    return float(cpu), float(rss)
