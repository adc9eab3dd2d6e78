"""How long something may wait, and for what."""

import pytest

from chaos.lateness import deadline, merged
from chaos.ledger import BOTH, DELIVERY, Disturbance
from chaos.parts import Part, common_absences


@pytest.mark.parametrize(
    ("disturbed", "expected"),
    [
        ([], 105),
        ([(90, 99)], 105),  # over before it was ready
        ([(105, 120)], 105),  # began when it should have been done
        ([(90, 110)], 115),
        ([(104, 110)], 115),
        ([(90, 103), (107, 120)], 125),  # the second came before the time after the first was over
        ([(90, 103), (108, 120)], 108),
    ],
)
def test_the_allowance_counts_from_the_end_of_what_hindered(disturbed, expected):
    assert deadline(100, 5, disturbed) == expected


def test_overlapping_disturbances_are_one_and_only_those_of_the_scope_count():
    disturbances = [
        Disturbance(5, 9, BOTH, "a"),
        Disturbance(1, 6, BOTH, "b"),
        Disturbance(8, 30, DELIVERY, "c"),
        Disturbance(20, 21, BOTH, "d"),
    ]
    assert merged(disturbances, "expiry") == [(1, 9), (20, 21)]
    assert merged(disturbances, "delivery") == [(1, 30)]


def test_only_the_time_without_any_program_of_a_kind_counts():
    def part(*absences):
        one = Part.__new__(Part)
        one.out_of_service = list(absences)
        return one

    assert common_absences([part((0, 10), (20, 30)), part((5, 25)), part((8, 9), (22, 40))]) == [(8, 9), (22, 25)]
    assert common_absences([part((0, 10)), part()]) == []
