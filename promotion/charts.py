"""Bar charts as numbers: the template draws them as inline SVG, the style sheet gives them their colours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

WIDTH, HEIGHT = 480, 90
COUNTS = [step * 10**power for power in range(12) for step in (1, 2, 5)]
SPANS = [10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400]  # seconds; then whole days
SPANS += [86_400 * days for days in COUNTS[1:]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    title: str
    over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Bars of one hour each; `ticks` are positions and texts along the bottom, `top` is the text of the upper edge."""

    title: str
    bars: Sequence[Bar]
    ticks: Sequence[tuple[float, str]]
    top: str
    total: str
    width: int = WIDTH
    height: int = HEIGHT
    middle: float = HEIGHT / 2


def hourly(
    title: str,
    values: Sequence[float],
    *,
    start: datetime,
    text: Callable[[float], str],
    scale: Sequence[int] = COUNTS,
    limit: float | None = None,
    total: str = "",
) -> Chart:
    """Return a chart of one value an hour from `start` on; `text` says a value with its unit.

    It reaches from 0 to the first number of `scale` that is high enough. Values above `limit` are marked.
    """
    highest = max(values, default=0)
    step, top = WIDTH / len(values), next((mark for mark in scale if mark >= highest), highest)
    hours = [start + timedelta(hours=index) for index in range(len(values))]
    bars = [
        Bar(
            x=round(index * step + 1.5, 1),
            y=round(HEIGHT - _height(value, top), 1),
            width=round(step - 3, 1),
            height=_height(value, top),
            title=f"{hour:%H}:00 UTC: {text(value)}",
            over=limit is not None and value > limit,
        )
        for index, (hour, value) in enumerate(zip(hours, values, strict=True))
    ]
    ticks = [(round((index + 0.5) * step, 1), f"{hour:%H}") for index, hour in enumerate(hours) if hour.hour % 3 == 0]
    return Chart(title=title, bars=bars, ticks=ticks, top=text(top), total=total)


def _height(value: float, top: float) -> float:
    """Return the bar's height; what is not 0 can be seen."""
    return round(max(value / top * HEIGHT, 2.0), 1) if value else 0.0
