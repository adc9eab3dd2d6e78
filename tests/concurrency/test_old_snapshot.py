"""A forgotten REPEATABLE READ keeps every dead index entry: a cycle's time stays within three times the fresh one,
and its claim walks over none of them.
"""

import os
import re

import pytest
from django.db import connection

from promotion.expiration import run_cycle
from tests.bulk import insert_due
from tests.explained import explained
from tests.factories import NOW
from tests.gates import session

pytestmark = pytest.mark.django_db(transaction=True)
PURCHASES = int(os.environ.get("OLD_SNAPSHOT_PURCHASES", "10000"))


def cycle(batch_size):
    return run_cycle(as_of=NOW, batch_size=batch_size, budget=30.0)


def quickest():
    return min(cycle(200).duration_ms for _ in range(5))


def test_an_old_snapshot_does_not_slow_the_cycle_down():
    insert_due(PURCHASES + 2_600)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE promotion.promotion_purchases")
    with session() as forgotten:
        forgotten.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        forgotten.execute("SELECT count(*) FROM promotion.promotion_purchases")
        fresh, touched_fresh = quickest(), pages_touched()
        for _ in range(PURCHASES // 2_000):
            assert cycle(2_000).expired == 2_000
        late, touched_late = quickest(), pages_touched()
    assert late < 3 * fresh, f"{fresh} ms fresh, {late} ms late"
    assert touched_late < 1.5 * touched_fresh  # the dead are not looked at


def pages_touched():
    """How many pages the claim of a cycle looks at."""
    with explained() as plans:
        cycle(200)
    (claim,) = [plan for plan in plans if "LockRows" in plan]
    return max(int(hits) for hits in re.findall(r"shared hit=(\d+)", claim))
