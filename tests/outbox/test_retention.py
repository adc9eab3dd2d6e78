"""Pruning: only published messages, only old ones, never many at once."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from outbox import retention
from outbox.models import Outbox
from outbox.relay import run_cycle
from outbox.retention import Pruner, prune
from tests.connections import other_connection
from tests.messages import record, states
from tests.programs import manage

pytestmark = pytest.mark.django_db(transaction=True)


def ago(**time):
    return timezone.now() - timedelta(**time)


def remaining():
    return list(Outbox.objects.order_by("id").values_list("pk", flat=True))


def test_nothing_goes_but_what_was_published_long_ago(settings):
    settings.OUTBOX_RETENTION_DAYS = 7
    old = {"created_at": ago(days=30)}
    kept = [
        *record(**old),
        *record(next_attempt_at=ago(days=20), **old),
        *record(parked_at=ago(days=20), **old),
        *record(parked_at=ago(days=20), skipped_at=ago(days=20), **old),
        *record(published_at=ago(days=6.99), **old),
    ]
    record(published_at=ago(days=7.01))

    assert prune() == 1

    assert remaining() == kept


def test_oldest_go_first_and_a_batch_has_its_limit():
    newest, oldest, middle = (record(published_at=ago(days=days)) for days in (10, 30, 20))

    assert prune(limit=2) == 2

    assert remaining() == newest
    assert {*oldest, *middle}.isdisjoint(remaining())


def test_locked_rows_are_passed_over():
    locked, free = record(published_at=ago(days=30)), record(published_at=ago(days=20))
    with other_connection() as link:
        link.execute("SELECT FROM promotion.outbox WHERE id = %s FOR UPDATE", locked)
        assert prune() == 1
    assert remaining() == locked
    assert free


def test_flow_goes_on_while_rows_are_being_pruned(publisher, no_stop):
    """Whoever prunes holds its rows locked until its commit."""
    record("k", published_at=ago(days=30), count=50)
    ids = record("k", count=3)
    with other_connection() as link:
        assert link.execute("DELETE FROM promotion.outbox WHERE published_at < now()").rowcount == 50
        result = run_cycle(publisher, at=timezone.now(), batch_size=100, stop=no_stop)
    assert result.published == 3
    assert set(states(*ids)) == {"published"}


def test_backlog_is_pruned_every_second(monkeypatch):
    monkeypatch.setattr(retention, "PAUSE", 0.0)
    pruner = Pruner()
    monkeypatch.setattr(retention, "PAUSE", 60.0)
    monkeypatch.setattr(retention, "BATCH", 2)
    monkeypatch.setattr(retention, "prune", lambda: prune(limit=2))
    record(published_at=ago(days=30), count=5)

    deadline = time.monotonic() + 20
    while remaining():
        assert time.monotonic() < deadline
        pruner.prune_if_time()
        time.sleep(0.1)


def test_relay_prunes_now_and_then(monkeypatch):
    monkeypatch.setattr(retention, "PAUSE", 0.2)
    pruner = Pruner()
    record(published_at=ago(days=30))

    pruner.prune_if_time()
    assert len(remaining()) == 1

    time.sleep(0.25)
    pruner.prune_if_time()
    assert remaining() == []


def test_prune_outbox_command():
    kept = record()
    record(count=5, published_at=ago(days=3))

    done = manage("prune_outbox", OUTBOX_RETENTION_DAYS=2)

    assert (done.returncode, done.stdout) == (0, "pruned 5\n")
    assert remaining() == kept
