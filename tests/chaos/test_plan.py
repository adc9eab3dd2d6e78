"""The schedule of faults."""

from itertools import pairwise

from chaos.plan import ELDEST, KINDS, LETHAL, SPARED_FROM, schedule


def test_a_seed_repeats_its_schedule_and_another_does_not():
    first = schedule(seed=1, duration=120, kinds=KINDS)
    assert schedule(seed=1, duration=120, kinds=set(KINDS)) == first
    assert schedule(seed=2, duration=120, kinds=KINDS) != first


def test_few_kinds_are_dealt_several_times_before_the_calm():
    faults = schedule(seed=3, duration=40, kinds=["cut"])
    assert len(faults) > 10


def test_every_kind_has_its_turn_and_what_is_hit_fits():
    faults = schedule(seed=3, duration=120, kinds=KINDS)
    assert {fault.kind for fault in faults} == set(KINDS)
    for fault in faults:
        targets, (shortest, longest) = KINDS[fault.kind]
        assert fault.target in targets
        assert shortest <= fault.seconds <= longest
        assert fault.at < 120


def test_a_longer_campaign_begins_as_the_shorter_one():
    short = schedule(seed=4, duration=60, kinds=KINDS)
    assert schedule(seed=4, duration=600, kinds=KINDS)[: len(short)] == short


def test_there_is_calm_when_every_kind_has_had_its_turn():
    faults = schedule(seed=5, duration=300, kinds=KINDS)
    times = [fault.at for fault in faults]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    longest = [position + 1 for position, gap in enumerate(gaps) if gap > 15]
    assert longest == [len(KINDS) * number for number in range(1, len(longest) + 1)]
    assert longest


def test_the_eldest_are_killed_early_but_not_late_so_that_their_memory_can_be_judged():
    faults = [fault for seed in range(20) for fault in schedule(seed=seed, duration=600, kinds=KINDS)]
    killed = {
        late: {fault.target for fault in faults if fault.kind in LETHAL and (fault.at > SPARED_FROM) is late}
        for late in (False, True)
    }
    assert killed[False] >= {*ELDEST, "worker-2", "relay-3", "younger-workers"}
    assert killed[True] == killed[False] - {*ELDEST}
