"""What the last run of each part has found out, kept in results.json, and the table in docs/performance.md."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.figures import HEAD, Figure

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- results: written by make bench -->\n", "<!-- end of results -->\n"


def keep(part: str, figures: Sequence[Figure], *, seconds: float) -> None:
    """Put the figures of a part in the place of those of its last run."""
    machine = f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}"
    found = {"machine": machine, "seconds": round(seconds), "figures": [asdict(one) for one in figures]}
    RESULTS.write_text(json.dumps({**_known(), part: found}, indent=1) + "\n")


def figures_of(parts: Iterable[str]) -> list[Figure]:
    """Return what is kept, in the order of `parts`."""
    known = _known()
    return [Figure(**one) for part in parts if part in known for one in known[part]["figures"]]


def write_page(figures: Sequence[Figure]) -> None:
    """Write the table."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}" + "\n".join([*HEAD, *(figure.row for figure in figures)]) + f"\n{END}{after}")


def _known() -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return known
