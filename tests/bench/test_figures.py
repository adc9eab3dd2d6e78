import pytest

from bench import results
from bench.figures import Figure, rates
from bench.measure import Sample, in_turn, interleaved, ratio


def figure(name="a figure", value=1.5, must=2.0, **changes):
    return Figure(name, value, must, changes.pop("aim", 1.2), "the floor", **changes)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"value": None}, ""),
        ({"must": None}, ""),
        ({"value": 2.0}, "yes"),
        ({"value": 2.1}, "**no**"),
        ({"value": 2.0, "at_least": True}, "yes"),
        ({"value": 1.9, "at_least": True}, "**no**"),
    ],
)
def test_verdict(changes, verdict):
    assert figure(**changes).verdict == verdict


def test_what_could_not_be_measured_is_never_met():
    assert figure(value=None, detail="no Java").row == "| a figure | not measured | the floor | 2 | 1.2 |  | no Java |"


def test_row():
    row = figure(value=4.71, must=5, aim=None, unit=" ms").row

    assert row == "| a figure | 4.71 ms | the floor | 5 ms |  | yes |  |"


def test_rates_tell_the_spread():
    assert rates(1_000, relay=Sample([0.5, 1.0, 0.25])) == "relay 2,000 (1,500 to 3,000) a second"


def test_sides_take_turns_and_the_warm_up_does_not_count():
    calls = []
    sides = {name: lambda name=name: calls.append(name) or len(calls) for name in ("mine", "theirs")}

    taken = in_turn(sides, rounds=2, warm_up=1)

    assert calls == ["mine", "theirs"] * 3
    assert taken == {"mine": Sample([3, 5]), "theirs": Sample([4, 6])}


def test_each_turn_is_prepared():
    calls = []

    interleaved({"a": lambda: calls.append("run")}, rounds=2, warm_up=0, prepare=calls.append)

    assert calls == ["a", "run"] * 2


def test_each_round_has_its_own_floor():
    assert ratio(Sample([2.0, 9.0, 30.0]), Sample([1.0, 3.0, 10.0])) == 3.0


def test_a_part_replaces_its_own_rows_only(tmp_path, monkeypatch):
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{results.BEGIN}old\n{results.END}after\n")
    monkeypatch.setattr(results, "PAGE", page)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.json")
    results.keep("one", [figure("first"), figure("gone")], seconds=1)
    results.keep("other", [figure("second")], seconds=1)

    results.keep("one", [figure("first again")], seconds=1)
    results.write_page(results.figures_of(["one", "other", "never run"]))

    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert [line.split(" | ")[0] for line in lines if "figure" not in line and line.startswith("| ")] == [
        "| first again",
        "| second",
    ]
