"""The plot for docs/performance.md: how much of what is allowed each figure uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.figures import Figure

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "performance.png"
GOOD, BAD, AIM = "#3b7a57", "#b3452c", "#8a8a8a"


def draw(figures: Sequence[Figure]) -> None:
    """Write docs/images/performance.png: the figures that have a limit, 1 being the limit of each."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    rated = [(figure, used) for figure in figures if (used := figure.used) is not None]
    chart, axes = pyplot.subplots(figsize=(10, 0.36 * len(rated) + 1.4), layout="constrained")
    for place, (figure, used) in enumerate(rated):
        axes.barh(place, used, color=GOOD if used <= 1 else BAD, height=0.62)
        axes.text(used + 0.02, place, f"{figure.value:.2f}{figure.unit}", va="center", fontsize=9)
        if figure.aimed_at is not None:
            axes.scatter(figure.aimed_at, place, marker="|", s=160, color=AIM)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(rated)), [figure.name for figure, _ in rated])
    axes.invert_yaxis()
    axes.set_xlabel("share of what is allowed (1 is the limit, the grey mark is the aim)")
    axes.set_xlim(0, max([1.2, *(used * 1.12 for _, used in rated)]))
    axes.spines[["top", "right"]].set_visible(False)
    chart.savefig(IMAGE, dpi=110)
