"""What a cycle would expire, found out without changing or locking anything (`--dry-run`)."""

import time
import uuid
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Q

from promotion.claiming import targets_of
from promotion.expiration import CycleResult, prepare
from promotion.models import ExpirationFailure, PromotionPurchase

CHUNK = 1_000


def preview_cycle(*, as_of: datetime, batch_size: int | None) -> CycleResult:
    """Count what a cycle at `as_of` would expire; with no `batch_size`, look at the whole backlog.

    Purchases that are stuck count as failed: whether the database would still refuse them cannot be told.
    """
    started = time.monotonic()
    result = CycleResult(run_id=uuid.uuid4(), as_of=as_of)
    result.failed = (
        PromotionPurchase.objects.due(as_of).filter(pk__in=ExpirationFailure.objects.values("purchase_id")).count()
    )
    for expires in _outcomes(result):
        if expires:
            result.expired += 1
        else:
            result.failed += 1
        if result.expired == batch_size:
            break
    result.duration_ms = round((time.monotonic() - started) * 1000, 3)
    return result


def _outcomes(result: CycleResult) -> Iterator[bool]:
    """Yield for each due purchase that is not stuck, oldest first, whether it would expire."""
    candidates = PromotionPurchase.objects.due(result.as_of).not_stuck().oldest_first()
    chunk = list(candidates[:CHUNK])
    while chunk:
        targets = targets_of(chunk)
        for purchase in chunk:
            last = (purchase.ends_at, purchase.pk)
            try:
                prepare(purchase, targets[purchase.pk], result)
            except Exception:  # noqa: BLE001 - as in the cycle: poison holds whatever its kind
                yield False
            else:
                yield True
        ends_at, pk = last
        chunk = list(candidates.filter(Q(ends_at__gt=ends_at) | Q(ends_at=ends_at, pk__gt=pk))[:CHUNK])
