"""What operators do with messages that could not be published: send them again, or give them up for good.

Messages that a relay or somebody else holds locked at the moment are left alone; the callers learn which were changed.
"""

from __future__ import annotations

from collections.abc import Collection

import structlog
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from outbox.models import CHANNEL, Outbox, OutboxQuerySet

log = structlog.get_logger("outbox.operations")


def requeue(message_ids: Collection[int], *, by: str) -> list[int]:
    """Make parked and skipped messages pending again, with all their attempts; return the ids of those changed.

    They go out in id order, before the later ones of their key. `by` says who wants it, for the log.
    """
    with transaction.atomic():
        changed = _lock(Outbox.objects.filter(pk__in=message_ids, parked_at__isnull=False))
        Outbox.objects.filter(pk__in=changed).update(
            parked_at=None, skipped_at=None, attempts=0, next_attempt_at=None, last_error="", requeued_at=timezone.now()
        )
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, '')", [CHANNEL])
    if changed:
        log.info("messages_requeued", message_ids=changed, by=by)
    return changed


def skip(message_ids: Collection[int], *, by: str) -> list[int]:
    """Give pending and parked messages up for good; return the ids of those changed.

    They keep the reason of their last failure, and can be requeued. `by` says who wants it, for the log.
    """
    now = timezone.now()
    with transaction.atomic():
        unsettled = Q(published_at__isnull=True, skipped_at__isnull=True)
        changed = _lock(Outbox.objects.filter(unsettled, pk__in=message_ids))
        Outbox.objects.filter(pk__in=changed).update(
            parked_at=Coalesce("parked_at", now), skipped_at=now, next_attempt_at=None
        )
    if changed:
        log.warning("messages_skipped", message_ids=changed, by=by)
    return changed


def _lock(messages: OutboxQuerySet) -> list[int]:
    return list(messages.order_by("id").select_for_update(skip_locked=True).values_list("id", flat=True))
