"""`python -m bench [--size full|small|tiny] [--only PART ...]`: measure; in full size, write the table and the plot."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from bench import (
    claims,
    cycle,
    delay,
    figures,
    kafka,
    large,
    lateness,
    memory,
    plots,
    processes,
    relay,
    results,
    workers,
    world,
)
from bench.figures import Figure
from bench.peers import compare

PARTS: dict[str, Callable[..., Iterator[Figure]]] = {
    "cycle": cycle.measure,
    "large": large.measure,
    "workers": workers.measure,
    "relay": relay.measure,
    "kafka": kafka.measure,
    "claims": claims.measure,
    "delay": delay.measure,
    "lateness": lateness.measure,
    "memory": memory.measure,
    "peers": compare.measure,
    "processes": processes.measure,
}
SIZES: dict[str, dict[str, dict[str, Any]]] = {
    "tiny": {
        "cycle": {"purchases": 2_000, "dead": 1_000, "held": 1_000, "rounds": 1},
        "large": {"purchases": 2_000, "rounds": 1},
        "workers": {"backlog": 400, "rounds": 1},
        "relay": {"messages": 1_000, "rounds": 1},
        "kafka": {"messages": 1_000, "rounds": 1},
        "claims": {"published": 2_000, "rounds": 2},
        "delay": {"messages": 10},
        "lateness": {"purchases": 20, "span": 2, "interval": 1},
        "memory": {"handled": 11_000},
        "peers": {"purchases": 50, "messages": 50, "rounds": 1},
        "processes": {"rounds": 1},
    },
    "small": {
        "cycle": {"purchases": 100_000, "dead": 100_000, "held": 150_000, "rounds": 20},
        "large": {"purchases": 1_000_000, "rounds": 20},
        "workers": {"backlog": 10_000, "rounds": 2},
        "relay": {"messages": 10_000, "rounds": 3},
        "kafka": {"messages": 10_000, "rounds": 3},
        "claims": {"published": 200_000, "rounds": 20},
        "delay": {"messages": 100},
        "lateness": {"purchases": 100, "span": 30, "interval": 6},
        "memory": {"handled": 50_000},
        "peers": {"purchases": 500, "messages": 1_000, "rounds": 2},
        "processes": {"rounds": 5},
    },
    "full": {
        "cycle": {"purchases": 1_000_000, "dead": 500_000, "held": 150_000, "rounds": 40},
        "large": {"purchases": 10_000_000, "rounds": 30},
        "workers": {"backlog": 20_000, "rounds": 7},
        "relay": {"messages": 20_000, "rounds": 5},
        "kafka": {"messages": 20_000, "rounds": 5},
        "claims": {"published": 5_000_000, "rounds": 40},
        "delay": {"messages": 300},
        "lateness": {"purchases": 1_000, "span": 300, "interval": 60},
        "memory": {"handled": 1_000_000},
        "peers": {"purchases": 1_000, "messages": 3_000, "rounds": 3},
        "processes": {"rounds": 7},
    },
}


def main() -> int:
    """Run the parts asked for, one after the other, on one server, each in databases of its own; 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    options = parser.parse_args()
    _quiet_logs()
    found: list[Figure] = []
    failed = 0
    with world.database() as url:
        for part in options.only:
            try:
                found += _measure(part, url, options.size)
            except Exception as error:  # noqa: BLE001 - the other parts are measured all the same
                traceback.print_exc()
                print(f"({part} failed: {error!r})", flush=True)
                failed = 1
    print("\n".join(["", *figures.HEAD, *(figure.row for figure in found)]))
    return failed


def _measure(part: str, url: str, size: str) -> list[Figure]:
    started = time.monotonic()
    found = []
    for figure in PARTS[part](url, **SIZES[size][part]):
        print(figure.row, flush=True)
        found.append(figure)
    seconds = time.monotonic() - started
    print(f"({part}: {seconds:.0f} s)", flush=True)
    if size == "full":
        results.keep(part, found, seconds=seconds)
        kept = results.figures_of(PARTS)
        results.write_page(kept)
        plots.draw(kept)
    return found


def _quiet_logs() -> None:
    """The programs log as in production, line by line, into a file instead of the terminal."""
    descriptor, path = tempfile.mkstemp(prefix="pinpromo-bench-", suffix=".log")
    print(f"The programs' logs, and what may go wrong: {path}", flush=True)
    os.dup2(descriptor, 2)


if __name__ == "__main__":
    sys.exit(main())
