"""What the benchmarks find out: one figure a line, mostly a ratio, with what it must reach."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure import Sample

HEAD = ["| figure | measured | against | must | aim | met | detail |", "|---|---|---|---|---|---|---|"]


@dataclass(frozen=True)
class Figure:
    """One line of the table. `at_least`: more is better. `value` is None if it could not be measured here."""

    name: str
    value: float | None
    must: float | None
    aim: float | None
    against: str
    detail: str = ""
    at_least: bool = False
    unit: str = ""

    @property
    def used(self) -> float | None:
        """How much of what is allowed it takes: up to 1 is good. None if there is no such limit, or no value."""
        return self._share(self.value)

    @property
    def aimed_at(self) -> float | None:
        """The aim as such a share."""
        return self._share(self.aim)

    @property
    def verdict(self) -> str:
        """Whether it is what it must be; nothing if that cannot be said."""
        if self.used is None:
            return ""
        return "yes" if self.used <= 1 else "**no**"

    @property
    def row(self) -> str:
        """The line of the Markdown table."""
        value = "not measured" if self.value is None else f"{self.value:.2f}{self.unit}"
        must = "report" if self.must is None else f"{'at least ' * self.at_least}{self.must:g}{self.unit}"
        aim = "" if self.aim is None else f"{self.aim:g}{self.unit}"
        return f"| {self.name} | {value} | {self.against} | {must} | {aim} | {self.verdict} | {self.detail} |"

    def _share(self, value: float | None) -> float | None:
        if value is None or self.must is None:
            return None
        return self.must / value if self.at_least else value / self.must


def milliseconds(**samples: Sample) -> str:
    """Say median and middle half of each sample, in milliseconds."""
    return "; ".join(f"{name.replace('_', ' ')} {spread(sample, 1e3, ' ms', 2)}" for name, sample in samples.items())


def spread(sample: Sample, factor: float = 1.0, unit: str = "", digits: int = 0) -> str:
    """Say the median and, in brackets, between what the middle half lies."""
    low, high = sample.quartiles
    return f"{sample.median * factor:,.{digits}f}{unit} ({low * factor:,.{digits}f} to {high * factor:,.{digits}f})"


def rates(count: int, **samples: Sample) -> str:
    """Say how many a second each sample did that took so many seconds for `count`."""
    return "; ".join(
        f"{name.replace('_', ' ')} {spread(Sample([count / seconds for seconds in sample.values]))} a second"
        for name, sample in samples.items()
    )
