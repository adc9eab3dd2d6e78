"""Bar charts as numbers: the template draws them as inline SVG, the style sheet gives them their colours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

WIDTH, HEIGHT = 480, 90
STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Bars of one hour each; `ticks` are positions and texts along the bottom, `top` is the highest value's text."""

    title: str
    kind: str
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
    total: str = "",
    kind: str = "count",
) -> Chart:
    """Return a chart of one value an hour from `start` on; `text` says a value with its unit. The scale begins at 0."""
    step, top = WIDTH / len(values), _round_up(max(values, default=0))
    hours = [start + timedelta(hours=index) for index in range(len(values))]
    bars = [
        Bar(
            x=round(index * step + 1.5, 1),
            y=round(HEIGHT - _height(value, top), 1),
            width=round(step - 3, 1),
            height=_height(value, top),
            title=f"{hour:%H}:00 UTC: {text(value)}",
        )
        for index, (hour, value) in enumerate(zip(hours, values, strict=True))
    ]
    ticks = [(round((index + 0.5) * step, 1), f"{hour:%H}") for index, hour in enumerate(hours) if hour.hour % 3 == 0]
    return Chart(title=title, kind=kind, bars=bars, ticks=ticks, top=text(top), total=total)


def _height(value: float, top: float) -> float:
    """Return the bar's height; what is not 0 can be seen."""
    return round(max(value / top * HEIGHT, 2.0), 1) if value else 0.0


def _round_up(value: float) -> float:
    """Return the next number of the form 1, 2 or 5 times a power of ten."""
    scale = 1.0
    while True:
        for step in STEPS:
            if step * scale >= value:
                return step * scale
        scale *= 10
