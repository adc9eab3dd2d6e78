"""The picture of a campaign: throughput, backlog and lag over time, and when what was broken. A plain SVG."""

from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from chaos.sampler import Sample

WIDTH, LEFT, RIGHT, TOP = 1000, 70, 20, 40
PANEL, SPACE = 110, 34
LANE = 13
FAMILIES = (
    ("programs", ("kill", "terminate", "suspend")),
    ("PostgreSQL", ("postgres", "terminate-backends", "exhaust", "fill-disk")),
    ("locks", ("lock", "old-snapshot")),
    ("broker", ("broker",)),
    ("network", ("cut", "delay", "freeze", "forget")),
    ("poison", ("poison",)),
)
INK, GRID = "#333", "#ddd"

Point = tuple[float, float]
Line = tuple[str, str, Sequence[Point]]  # name, colour, points


def draw(path: Path, samples: Sequence[Sample], faults: Sequence[tuple[float, float, str]]) -> None:
    """Write the picture; times count from the first sample."""
    if len(samples) < 2:
        return
    start, end = samples[0].at, samples[-1].at
    panels: list[tuple[str, list[Line]]] = [
        (
            "per second",
            [
                ("expired", "#c0392b", _rate(samples, lambda one: one.expired)),
                ("cancelled", "#8e44ad", _rate(samples, lambda one: one.cancelled)),
                ("published", "#2980b9", _rate(samples, lambda one: one.published)),
            ],
        ),
        (
            "rows",
            [
                ("due", "#c0392b", [(one.at, one.backlog) for one in samples]),
                ("pending messages", "#2980b9", [(one.at, one.pending) for one in samples]),
            ],
        ),
        ("seconds", [("oldest pending message", "#2980b9", [(one.at, one.lag) for one in samples])]),
    ]
    scale = (WIDTH - LEFT - RIGHT) / (end - start)

    def x(at: float) -> float:
        return LEFT + (min(max(at, start), end) - start) * scale

    parts, y = [], TOP
    for unit, lines in panels:
        parts += _panel(unit, lines, y, x)
        y += PANEL + SPACE
    parts += _fault_lanes(faults, y, x)
    bottom = y + LANE * len(FAMILIES)
    parts += _clock(start, end, bottom, x)
    height = bottom + 40
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="11" fill="{INK}">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
        f'<text x="{LEFT}" y="20" font-size="14">Fault campaign: {len(faults)} faults in {end - start:.0f} s</text>'
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([head, *parts, "</svg>\n"]))


def _rate(samples: Sequence[Sample], count: Callable[[Sample], int]) -> list[Point]:
    pairs = pairwise(samples)
    return [(later.at, max(0.0, (count(later) - count(earlier)) / (later.at - earlier.at))) for earlier, later in pairs]


def _panel(unit: str, lines: Sequence[Line], top: float, x: Callable[[float], float]) -> list[str]:
    highest = max([1.0, *(value for _, _, points in lines for _, value in points)])
    base = top + PANEL
    parts = [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="{GRID}"/>'
        for y in (top, top + PANEL / 2, base)
    ]
    for value, y in ((highest, top), (highest / 2, top + PANEL / 2), (0, base)):
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{value:.3g}</text>')
    parts.append(f'<text x="{LEFT}" y="{top - 6}">{unit}:</text>')
    offset = LEFT + 75
    for name, colour, points in lines:
        path = " ".join(f"{x(at):.1f},{base - value / highest * PANEL:.1f}" for at, value in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1"/>')
        parts.append(f'<text x="{offset}" y="{top - 6}" fill="{colour}">{name}</text>')
        offset += 8 * len(name) + 20
    return parts


def _fault_lanes(faults: Sequence[tuple[float, float, str]], top: float, x: Callable[[float], float]) -> list[str]:
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


def _clock(start: float, end: float, bottom: float, x: Callable[[float], float]) -> list[str]:
    step = max(10, round((end - start) / 10 / 10) * 10)
    return [
        f'<text x="{x(start + second):.1f}" y="{bottom + 20}" text-anchor="middle">{second} s</text>'
        for second in range(0, int(end - start) + 1, step)
    ]
