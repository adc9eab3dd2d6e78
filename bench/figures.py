"""What the benchmarks find out: one figure a line, as a ratio, with what it must reach."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.measure import Sample

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- results: written by make bench -->\n", "<!-- end of results -->\n"


@dataclass(frozen=True)
class Figure:
    """One line of the table. `at_least`: more is better."""

    name: str
    value: float
    must: float | None
    aim: float | None
    against: str
    detail: str = ""
    at_least: bool = False
    unit: str = ""

    @property
    def verdict(self) -> str:
        """Whether it is what it must be."""
        if self.must is None:
            return ""
        good = self.value >= self.must if self.at_least else self.value <= self.must
        return "yes" if good else "**no**"

    @property
    def row(self) -> str:
        """The line of the Markdown table."""
        sign = "at least " if self.at_least else ""
        must = "" if self.must is None else f"{sign}{self.must:g}"
        aim = "" if self.aim is None else f"{self.aim:g}"
        return (
            f"| {self.name} | {self.value:.2f}{self.unit} | {self.against} | {must} | {aim} | {self.verdict} "
            f"| {self.detail} |"
        )


def milliseconds(**samples: Sample) -> str:
    """Say median and middle half of each sample, in milliseconds."""
    return "; ".join(
        f"{name.replace('_', ' ')} {sample.median * 1e3:.2f} ms "
        f"({sample.quartiles[0] * 1e3:.2f} to {sample.quartiles[1] * 1e3:.2f})"
        for name, sample in samples.items()
    )


def keep(figures: list[Figure], size: str) -> None:
    """Add to what earlier runs found out, and write the table into docs/performance.md."""
    known = json.loads(RESULTS.read_text())["figures"] if RESULTS.exists() else []
    found = {figure.name for figure in figures}
    merged = [Figure(**one) for one in known if one["name"] not in found] + figures
    machine = f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}"
    RESULTS.write_text(
        json.dumps({"size": size, "machine": machine, "figures": [asdict(one) for one in merged]}, indent=1) + "\n"
    )
    rows = ["| figure | measured | against | must | aim | met | detail |", "|---|---|---|---|---|---|---|"]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}" + "\n".join([*rows, *(one.row for one in merged)]) + f"\n{END}{after}")
