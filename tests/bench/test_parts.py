"""Some parts at tiny sizes, so that they keep in step with the code that they measure; types are checked in all."""

import subprocess
import sys

from bench.__main__ import PARTS, SIZES
from bench.peers import environment
from tests.programs import PATIENCE, ROOT


def test_parts_measure():
    run = subprocess.run(
        [sys.executable, "-m", "bench", "--size", "tiny", "--only", "cycle", "claims"],
        cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE, check=False,
    )  # fmt: skip

    assert run.returncode == 0, run.stdout
    table = run.stdout.rpartition("|---|\n")[2].splitlines()
    assert len(table) == 7, run.stdout
    assert all(float(row.split(" | ")[1]) > 0 for row in table)


def test_every_size_has_every_part():
    assert [list(parts) for parts in SIZES.values()] == [list(PARTS)] * len(SIZES)


def test_peers_are_pinned():
    assert all(environment.version(name) for name in ("procrastinate", "django-tasks-db", "django-jaiminho"))
