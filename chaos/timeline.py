"""The picture of a campaign: throughput, backlog, lag and memory over time, and when what was broken. A plain SVG."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

from chaos.sampler import Sample

WIDTH, LEFT, RIGHT, TOP = 1000, 70, 20, 40
PANEL, SPACE = 110, 34
LANE = 13
COLUMNS = 400  # of each, the highest of a line's points is drawn: ten minutes stay readable
GAP = 3.0  # seconds without a sample, which break a line
FAMILIES = (
    ("programs", ("kill", "terminate ", "suspend", "clock")),
    ("PostgreSQL", ("postgres", "terminate-backends", "exhaust", "fill-disk")),
    ("locks", ("lock", "old-snapshot")),
    ("broker", ("broker",)),
    ("topic", ("missing-topic",)),
    ("network", ("cut", "delay", "freeze", "forget")),
    ("poison", ("poison",)),
)
RED, VIOLET, BLUE, GREEN = "#c0392b", "#8e44ad", "#2980b9", "#27ae60"
INK, GRID = "#333", "#ddd"

Point = tuple[float, float]  # wall clock, value
Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel."""

    name: str
    colour: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines with one axis; a logarithmic one shows the single row beside the thousands after an outage."""

    unit: str
    logarithmic: bool
    lines: Sequence[Line]


def draw(
    path: Path,
    title: str,
    samples: Sequence[Sample],
    memory: Sequence[tuple[str, Sequence[Point]]],
    faults: Sequence[tuple[float, float, str]],
) -> None:
    """Write the picture; times count from the first sample. `memory` is that of some programs, in megabytes."""
    if len(samples) < 2:
        return
    start, end = samples[0].at, samples[-1].at
    scale = (WIDTH - LEFT - RIGHT) / (end - start)

    def x(at: float) -> float:
        return LEFT + (min(max(at, start), end) - start) * scale

    parts, y = [], TOP
    for panel in _panels(samples, memory):
        parts += _draw_panel(panel, y, x)
        y += PANEL + SPACE
    parts += _fault_lanes(faults, y, x)
    bottom = y + LANE * len(FAMILIES)
    parts += _clock(start, end, bottom, x)
    height = bottom + 40
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="11" fill="{INK}">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>'
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([head, *parts, "</svg>\n"]))


def _panels(samples: Sequence[Sample], memory: Sequence[tuple[str, Sequence[Point]]]) -> list[Panel]:
    changes = [
        Line("expired", RED, _rate(samples, lambda one: one.expired)),
        Line("cancelled", VIOLET, _rate(samples, lambda one: one.cancelled)),
        Line("published", BLUE, _rate(samples, lambda one: one.published)),
    ]
    waiting = [
        Line("due", RED, [(one.at, one.backlog) for one in samples]),
        Line("pending messages", BLUE, [(one.at, one.pending) for one in samples]),
    ]
    lag = [Line("oldest pending message", BLUE, [(one.at, one.lag) for one in samples])]
    sizes = [Line(name, colour, points) for (name, points), colour in zip(memory, (RED, BLUE, GREEN), strict=False)]
    return [
        Panel("per second", True, changes),
        Panel("rows", True, waiting),
        Panel("seconds", False, lag),
        Panel("MB", False, sizes),
    ]


def _rate(samples: Sequence[Sample], count: Callable[[Sample], int]) -> list[Point]:
    pairs = pairwise(samples)
    return [(later.at, max(0.0, (count(later) - count(earlier)) / (later.at - earlier.at))) for earlier, later in pairs]


def _draw_panel(panel: Panel, top: float, x: Scale) -> list[str]:
    highest = max([1.0, *(value for line in panel.lines for _, value in line.points)])
    ticks = _powers(highest) if panel.logarithmic else [0.0, highest / 2, highest]
    bend: Scale = math.log1p if panel.logarithmic else float

    def y(value: float) -> float:
        return top + PANEL * (1 - bend(value) / bend(ticks[-1]))

    parts = [f'<text x="{LEFT}" y="{top - 6}">{panel.unit}:</text>']
    for tick in ticks:
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="{GRID}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:,.0f}</text>')
    offset = LEFT + 75
    for line in panel.lines:
        for piece in _pieces(line.points):
            path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in _thinned(piece))
            parts.append(f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="1"/>')
        parts.append(f'<text x="{offset}" y="{top - 6}" fill="{line.colour}">{line.name}</text>')
        offset += 8 * len(line.name) + 20
    return parts


def _powers(highest: float) -> list[float]:
    return [0.0, *(10.0**power for power in range(math.ceil(math.log10(max(10.0, highest))) + 1))]


def _pieces(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Yield the points between two gaps."""
    piece: list[Point] = []
    for point in points:
        if piece and point[0] - piece[-1][0] > GAP:
            yield piece
            piece = []
        piece.append(point)
    if piece:
        yield piece


def _thinned(points: Sequence[Point]) -> list[Point]:
    size = math.ceil(len(points) / COLUMNS)
    columns = [points[start : start + size] for start in range(0, len(points), size)]
    return [max(column, key=lambda point: point[1]) for column in columns]


def _fault_lanes(faults: Sequence[tuple[float, float, str]], top: float, x: Scale) -> list[str]:
    parts = []
    for row, (family, _) in enumerate(FAMILIES):
        y = top + LANE * row
        parts.append(f'<text x="{LEFT - 6}" y="{y + 10}" text-anchor="end">{family}</text>')
        for start, end, text in faults:
            if _family(text) == family:
                width = max(2.0, x(end) - x(start))
                parts.append(
                    f'<rect x="{x(start):.1f}" y="{y + 1}" width="{width:.1f}" height="{LANE - 3}" '
                    f'fill="#e67e22" fill-opacity="0.7"><title>{escape(text)}</title></rect>'
                )
    return parts


def _family(text: str) -> str:
    return next((name for name, beginnings in FAMILIES if text.startswith(beginnings)), FAMILIES[0][0])


def _clock(start: float, end: float, bottom: float, x: Scale) -> list[str]:
    step = max(10, round((end - start) / 10 / 10) * 10)
    return [
        f'<text x="{x(start + second):.1f}" y="{bottom + 20}" text-anchor="middle">{second} s</text>'
        for second in range(0, int(end - start) + 1, step)
    ]
