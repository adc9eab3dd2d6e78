"""`python -m bench [--size small|full] [--only PART ...]`: measure, write the table and the plots."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator

from bench import cycle, figures, plots, processes, relay, workers, world
from bench.figures import Figure

Part = Callable[[str], Iterator[Figure]]

SIZES: dict[str, dict[str, Part]] = {
    "small": {
        "cycle": lambda url: cycle.measure(url, purchases=100_000, dead=100_000, held=150_000, rounds=20),
        "workers": lambda url: workers.measure(url, backlog=10_000, rounds=2),
        "relay": lambda url: relay.measure(url, messages=10_000, published=200_000, rounds=3),
        "processes": lambda url: processes.measure(url, rounds=5, handled=20_000),
    },
    "full": {
        "cycle": lambda url: cycle.measure(url, purchases=1_000_000, dead=500_000, held=150_000, rounds=40),
        "workers": lambda url: workers.measure(url, backlog=20_000, rounds=3),
        "relay": lambda url: relay.measure(url, messages=20_000, published=5_000_000, rounds=5),
        "processes": lambda url: processes.measure(url, rounds=9, handled=100_000),
    },
}


def main() -> None:
    """Run the parts asked for, one after the other, on one server, each in databases of its own."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="full", help="small: two minutes; full: a quarter of an hour")
    parser.add_argument("--only", nargs="+", choices=SIZES["full"], default=list(SIZES["full"]))
    options = parser.parse_args()
    _quiet_logs()
    with world.database() as url:
        for name in options.only:
            found = []
            for figure in SIZES[options.size][name](url):
                print(figure.row, flush=True)
                found.append(figure)
            figures.keep(found, options.size)
    plots.draw()


def _quiet_logs() -> None:
    """The programs log as in production, line by line, into a file instead of the terminal."""
    descriptor, path = tempfile.mkstemp(prefix="pinpromo-bench-", suffix=".log")
    print(f"The programs' logs, and what may go wrong: {path}", flush=True)
    os.dup2(descriptor, 2)


if __name__ == "__main__":
    main()
