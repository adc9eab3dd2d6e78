"""Two plots for docs/performance.md: the ratios against what they must be, and the milliseconds behind them."""

from __future__ import annotations

import json
from pathlib import Path

from bench.figures import RESULTS, Figure

IMAGES = Path(__file__).parent.parent / "docs" / "images"
GOOD, BAD, AIM = "#3b7a57", "#b3452c", "#8a8a8a"


def draw() -> None:
    """Write docs/images/performance.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figures = [Figure(**one) for one in json.loads(RESULTS.read_text())["figures"]]
    rated = [figure for figure in figures if figure.must is not None]
    # How much of what is allowed is used up: 1 is the limit, whatever the figure.
    used = [figure.must / figure.value if figure.at_least else figure.value / figure.must for figure in rated]
    aims = [
        (figure.must / figure.aim if figure.at_least else figure.aim / figure.must) if figure.aim else None
        for figure in rated
    ]
    chart, axes = pyplot.subplots(figsize=(10, 0.42 * len(rated) + 1.4), layout="constrained")
    places = range(len(rated))
    axes.barh(places, used, color=[GOOD if part <= 1 else BAD for part in used], height=0.62)
    axes.scatter([aim for aim in aims if aim], [place for place in places if aims[place]], marker="|", s=160, color=AIM)
    axes.axvline(1, color="black", linewidth=1)
    for place, figure, part in zip(places, rated, used, strict=True):
        axes.text(part + 0.02, place, f"{figure.value:.2f}{figure.unit}", va="center", fontsize=9)
    axes.set_yticks(places, [figure.name for figure in rated])
    axes.invert_yaxis()
    axes.set_xlabel("share of what is allowed (1 is the limit, the grey mark is the aim)")
    axes.set_xlim(0, max(1.2, max(used) * 1.12))
    axes.spines[["top", "right"]].set_visible(False)
    chart.savefig(IMAGES / "performance.png", dpi=110)
