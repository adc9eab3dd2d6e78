"""The history of completed cycles: kept small, and never in the way of a cycle."""

import os
import socket
from datetime import timedelta

import structlog
from django.db import Error
from django.db.models.functions import Now

from pinpromo import failures
from pinpromo.transactions import bounded
from promotion.expiration import CycleResult
from promotion.models import ExpirationRun

log = structlog.get_logger("promotion.history")

KEPT = timedelta(days=2)
PRUNED_AT_ONCE = 100  # more than one cycle adds, so that the table shrinks back after whatever happened
SECONDS = 1.0


def remember(result: CycleResult) -> None:
    """Note a completed cycle and drop old ones, within SECONDS. A failure is logged, and the cycle stands."""
    try:
        with bounded(seconds=SECONDS):
            _add(result)
            old = ExpirationRun.objects.filter(finished_at__lt=Now() - KEPT).order_by("finished_at")
            pruned = old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:PRUNED_AT_ONCE]
            ExpirationRun.objects.filter(pk__in=list(pruned)).delete()
    except Error as error:
        log.warning("history_failed", run_id=str(result.run_id), reason=failures.describe(error))


def _add(result: CycleResult) -> None:
    ExpirationRun.objects.create(
        run_id=result.run_id,
        instance=f"{socket.gethostname()}:{os.getpid()}",
        as_of=result.as_of,
        expired=result.expired,
        failed=result.failed,
        skipped_locked=result.skipped_locked,
        duration_ms=result.duration_ms,
        lateness_seconds=result.lateness.total_seconds(),
    )
