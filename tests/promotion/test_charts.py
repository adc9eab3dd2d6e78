"""Charts as numbers."""

import itertools
from datetime import UTC, datetime

import pytest

from promotion import charts

START = datetime(2026, 1, 15, 22, tzinfo=UTC)


def chart(values, **options):
    return charts.hourly("x", values, start=START, text=lambda value: f"{value:.0f} pcs", **options)


def test_heights_are_in_proportion_and_what_is_not_zero_can_be_seen():
    heights = [bar.height for bar in chart([0, 1, 50, 100, 100_000]).bars]
    assert heights == [0, 2, 2, 2, charts.HEIGHT]
    assert [bar.height for bar in chart([5, 10]).bars] == [charts.HEIGHT / 2, charts.HEIGHT]


def test_bars_stand_side_by_side_on_the_ground():
    bars = chart([3] * 24).bars
    assert all(left.x + left.width <= right.x for left, right in itertools.pairwise(bars))
    assert bars[-1].x + bars[-1].width <= charts.WIDTH
    assert all(bar.y + bar.height == charts.HEIGHT for bar in bars)


def test_hours_are_named():
    made = chart([0, 7, 0, 0])
    assert made.bars[1].title == "23:00 UTC: 7 pcs"
    assert [text for _x, text in made.ticks] == ["00"]


@pytest.mark.parametrize(
    ("highest", "scale", "top"),
    [(0, charts.COUNTS, 1), (3, charts.COUNTS, 5), (1_001, charts.COUNTS, 2_000), (61, charts.SPANS, 120),
     (90_000, charts.SPANS, 172_800), (10**15, charts.COUNTS, 10**15)],
)  # fmt: skip
def test_the_scale_ends_at_a_round_number(highest, scale, top):
    assert chart([highest], scale=scale).top == f"{top} pcs"


def test_what_is_above_the_limit_is_marked():
    assert [bar.over for bar in chart([0, 120, 121], limit=120).bars] == [False, False, True]
    assert not any(bar.over for bar in chart([10**6]).bars)
