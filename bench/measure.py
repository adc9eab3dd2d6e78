"""Interleaved measurements: A B A B ..., so that a noisy machine disturbs all sides alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Sample:
    """The values of one side, in the order in which they were taken."""

    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The values between which the middle half lies."""
        if len(self.values) == 1:
            return self.values[0], self.values[0]
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return low, high

    def percentile(self, percent: int) -> float:
        return statistics.quantiles(self.values, n=100, method="inclusive")[percent - 1]


def interleaved(
    sides: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warm_up: int = 2,
    prepare: Callable[[str], object] = lambda _name: None,
) -> dict[str, Sample]:
    """Time each side once per round, in turn, the first warm-ups left out; return seconds by side.

    `prepare` is called with the side's name before each of its turns, and is not timed.
    """
    turns = {name: partial(_timed, run, partial(prepare, name)) for name, run in sides.items()}
    return in_turn(turns, rounds=rounds, warm_up=warm_up)


def in_turn(sides: Mapping[str, Callable[[], float]], *, rounds: int, warm_up: int = 0) -> dict[str, Sample]:
    """Let each side measure its own seconds once per round, in turn, the first warm-ups left out."""
    values: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(-warm_up, rounds):
        for name, run in sides.items():
            seconds = run()
            if number >= 0:
                values[name].append(seconds)
    return {name: Sample(taken) for name, taken in values.items()}


def ratio(sample: Sample, floor: Sample) -> float:
    """How many times longer `sample` took than `floor`: the median over the rounds, each with its own floor."""
    pairs = zip(sample.values, floor.values, strict=True)
    return statistics.median(mine / theirs for mine, theirs in pairs)


def _timed(run: Callable[[], object], prepare: Callable[[], object]) -> float:
    prepare()
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
