"""What 2,000 known poison purchases of the dearest kind cost a cycle: bounded by counts and by a share of its time."""

import pytest
from django.db import connection

from promotion import expiration
from promotion.expiration import run_cycle
from promotion.models import ExpirationFailure
from tests import poison
from tests.factories import NOW, PurchaseFactory
from tests.readings import statuses
from tests.round_trips import round_trips

pytestmark = pytest.mark.django_db

KNOWN = 2_000
REFUSED_AND_KNOWN = """
WITH purchase AS (
    INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
    SELECT %s, 'Boost', 'Active', '2025-01-01Z', '2026-01-01Z'::timestamptz + number * interval '1 s'
    FROM generate_series(1, %s) AS number RETURNING id, ends_at
), target AS (
    INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
    SELECT id, 'NewsPost', gen_random_uuid() FROM purchase
)
INSERT INTO promotion.expiration_failures (purchase_id, first_failed_at, last_failed_at, attempts, reason)
SELECT id, ends_at, ends_at, 1, '' FROM purchase
"""
ROUND_TRIPS_EACH = 18  # two probes on the way down to a row, each in a savepoint: 14.4


@pytest.fixture
def healthy():
    poison.create("row refused", 0)
    with connection.cursor() as cursor:
        cursor.execute(REFUSED_AND_KNOWN, [poison.HOSTILE_TENANT, KNOWN])
    return PurchaseFactory.create_batch(20)


def cycle(**changes):
    return run_cycle(**{"as_of": NOW, "batch_size": 200, "budget": 600.0} | changes)


def test_a_cycle_tries_half_of_them_and_two_cycles_all(healthy):
    with round_trips() as waits:
        first = cycle()
    assert statuses(healthy) == ["Expired"] * 20
    assert (first.expired, first.failed) == (20, 1_000)
    assert len(waits) <= ROUND_TRIPS_EACH * first.failed
    assert cycle().failed == 1_000
    assert set(ExpirationFailure.objects.values_list("attempts", flat=True)) == {2}


def test_they_get_a_share_of_the_time_and_the_healthy_the_rest(healthy, monkeypatch):
    monkeypatch.setattr(expiration, "RETRY_SHARE", 0.0)  # it is over at once
    result = cycle()
    assert statuses(healthy) == ["Expired"] * 20
    assert (result.expired, result.failed, result.infrastructure_errors) == (20, 0, 0)


def test_a_stop_leaves_them_for_the_next_process(healthy):
    assert cycle(stopping=lambda: True).selected == 0
    assert set(ExpirationFailure.objects.values_list("attempts", flat=True)) == {1}
