"""A forgotten REPEATABLE READ keeps every dead index entry: a cycle's time stays within three times the fresh one."""

import os

import pytest
from django.db import connection

from promotion.expiration import run_cycle
from tests.bulk import insert_due
from tests.factories import NOW
from tests.gates import session

pytestmark = pytest.mark.django_db(transaction=True)
PURCHASES = int(os.environ.get("OLD_SNAPSHOT_PURCHASES", "10000"))


def cycle(batch_size):
    return run_cycle(as_of=NOW, batch_size=batch_size, budget=30.0)


def quickest():
    return min(cycle(200).duration_ms for _ in range(5))


def test_an_old_snapshot_does_not_slow_the_cycle_down():
    insert_due(PURCHASES + 2_200)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE promotion.promotion_purchases")
    with session() as forgotten:
        forgotten.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        forgotten.execute("SELECT count(*) FROM promotion.promotion_purchases")
        fresh = quickest()
        for _ in range(PURCHASES // 2_000):
            assert cycle(2_000).expired == 2_000
        late = quickest()
    assert late < 3 * fresh, f"{fresh} ms fresh, {late} ms late"
