"""Published messages are kept for a while, for questions, and then deleted in small batches (R-36)."""

from __future__ import annotations

import time
from datetime import timedelta

import structlog
from django.conf import settings
from django.utils import timezone

from outbox.models import Outbox
from pinpromo.transactions import bounded

log = structlog.get_logger("outbox.retention")

BATCH = 1_000
SECONDS = 5.0  # a batch, at most
PAUSE = 60.0  # seconds between two looks for something to prune


def prune(*, limit: int = BATCH) -> int:
    """Delete up to `limit` messages that were published longer ago than the retention time; return how many.

    Nothing but published messages goes. Raises Django's database errors.
    """
    oldest_kept = timezone.now() - timedelta(days=settings.OUTBOX_RETENTION_DAYS)
    with bounded(seconds=SECONDS):
        expired = Outbox.objects.published().filter(published_at__lt=oldest_kept).order_by("published_at", "id")
        ids = expired.select_for_update(skip_locked=True).values_list("id", flat=True)[:limit]
        deleted, _ = Outbox.objects.published().filter(pk__in=list(ids)).delete()
    if deleted:
        log.info("messages_pruned", count=deleted)
    return deleted


class Pruner:
    """Prunes now and then beside the relay's work: a batch a minute, or a second while there is a backlog."""

    def __init__(self) -> None:
        self._next = time.monotonic() + PAUSE

    def prune_if_time(self) -> None:
        """Prune one batch, if it is time for it."""
        if time.monotonic() >= self._next:
            full = prune() == BATCH
            self._next = time.monotonic() + (1.0 if full else PAUSE)
