"""The history of cycles: complete, small, and never in the way."""

import uuid
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from promotion import history
from promotion.expiration import CycleResult, run_cycle
from promotion.models import ExpirationRun
from tests.factories import NOW, PurchaseFactory
from tests.readings import statuses

pytestmark = pytest.mark.django_db


def test_a_cycle_is_remembered_with_its_counts_and_the_lateness_of_the_oldest():
    PurchaseFactory(ends_at=NOW - timedelta(days=9), targets=0)
    PurchaseFactory(ends_at=NOW - timedelta(minutes=1))
    PurchaseFactory(ends_at=NOW - timedelta(minutes=7))
    result = run_cycle(as_of=NOW, batch_size=10, budget=30)
    history.remember(result)
    run = ExpirationRun.objects.get()
    assert (run.run_id, run.as_of) == (result.run_id, NOW)
    assert (run.expired, run.failed, run.skipped_locked, run.lateness_seconds) == (2, 1, 0, 420.0)
    assert run.duration_ms == result.duration_ms


def test_a_cycle_without_work_is_remembered_too():
    history.remember(run_cycle(as_of=NOW, batch_size=10, budget=30))
    assert ExpirationRun.objects.get().lateness_seconds == 0


def test_old_ones_go_a_bounded_number_at_a_time(monkeypatch):
    monkeypatch.setattr(history, "PRUNED_AT_ONCE", 2)
    counts = {"expired": 0, "failed": 0, "skipped_locked": 0, "duration_ms": 0, "lateness_seconds": 0}
    for hours in (47, 49, 50, 51):
        ended = timezone.now() - timedelta(hours=hours)
        ExpirationRun.objects.create(run_id=uuid.UUID(int=hours), as_of=NOW, finished_at=ended, **counts)
    left = []
    for _ in range(2):
        history.remember(CycleResult(run_id=uuid.uuid4(), as_of=NOW))
        left.append(
            [run_id.int for run_id in ExpirationRun.objects.order_by("-finished_at").values_list("pk", flat=True)]
        )
    assert [ids[-2:] for ids in left] == [[47, 49], [left[0][0], 47]]


def test_a_command_remembers_and_a_broken_history_does_not_fail_it(capsys):
    purchase = PurchaseFactory()
    call_command("expire_promotions")
    assert ExpirationRun.objects.get().expired == 1
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE promotion.expiration_runs RENAME TO elsewhere")
    other = PurchaseFactory()
    call_command("expire_promotions")
    assert statuses([purchase, other]) == ["Expired", "Expired"]
