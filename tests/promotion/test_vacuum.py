"""Vacuum, once it comes, takes the entries of expired purchases out of the index that looks walk along."""

import psycopg
import pytest

from promotion.expiration import run_cycle
from tests.bulk import insert_due
from tests.factories import NOW
from tests.programs import database_url

pytestmark = pytest.mark.django_db(transaction=True)


def test_vacuum_cleans_the_indexes_although_few_pages_hold_dead_rows():
    """Left to itself, PostgreSQL leaves the indexes alone as long as fewer than two pages in a hundred hold any."""
    insert_due(20_000)
    assert run_cycle(as_of=NOW, batch_size=200, budget=30.0).expired == 200
    said = []
    with psycopg.connect(database_url(), autocommit=True) as other:
        other.add_notice_handler(lambda notice: said.append(notice.message_primary))
        other.execute("VACUUM (VERBOSE) promotion.promotion_purchases")
    assert "index scan needed" in "\n".join(said)
    assert 'index "purchases_due": pages: ' in "\n".join(said)
