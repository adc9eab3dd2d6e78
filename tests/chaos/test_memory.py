"""When a program's memory counts as growing."""

import pytest

from chaos.memory import GROWTH, growth

HOUR = 1_000_000.0  # of the wall clock, when the life began


def life(seconds, size):
    return [(HOUR + at / 2, size(at / 2)) for at in range(seconds * 2 + 1)]


@pytest.mark.parametrize("seconds", [0, 1, 30, 59])
def test_too_short_to_say_anything(seconds):
    assert growth(life(seconds, lambda at: 80 + at)) is None


def test_warming_up_noise_and_one_peak_are_no_growth():
    assert growth(life(600, lambda at: 80 + min(at, 30))) == pytest.approx(0)
    assert abs(growth(life(600, lambda at: 80 + at % 7))) < 2
    assert growth(life(600, lambda at: 120 if 300 < at < 330 else 80)) < GROWTH


@pytest.mark.parametrize("step_at", [100, 315, 500])
def test_a_single_step_is_no_growth(step_at):
    assert growth(life(600, lambda at: 80 + 25 * (at > step_at))) < GROWTH


def test_a_leak_behind_a_step_is_growth():
    assert growth(life(600, lambda at: 80 + 25 * (at > 300) + at / 30)) > GROWTH


@pytest.mark.parametrize("a_minute", [1.2, 30])
def test_a_steady_leak_is_growth(a_minute):
    assert growth(life(600, lambda at: 80 + at / 60 * a_minute)) == pytest.approx(570 / 60 * a_minute, rel=0.01)
    assert growth(life(600, lambda at: 80 + at / 60 * a_minute)) > GROWTH


def test_no_samples_at_all():
    assert growth([]) is None
