"""What a cycle would expire, found out without changing or locking anything (`--dry-run`)."""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from pinpromo.deadline import deadline
from promotion.batches import expire, tell
from promotion.claiming import Place, targets_of
from promotion.events import Target
from promotion.expiration import CycleResult
from promotion.models import ExpirationFailure, PromotionPurchase, PurchaseQuerySet

CHUNK = 1_000
QUERY_SECONDS = 30.0  # for a look at the purchases: a connection that has gone silent would hold a preview for ever


def preview_cycle(*, as_of: datetime, batch_size: int | None) -> CycleResult:
    """Count what a cycle at `as_of` would expire; with no `batch_size`, look at the whole backlog.

    Purchases that are stuck count as failed: whether the database would still refuse them cannot be told.
    Raises Django's database errors, also when a look takes longer than QUERY_SECONDS.
    """
    started = time.monotonic()
    result = CycleResult(run_id=uuid.uuid4(), as_of=as_of)
    stuck = ExpirationFailure.objects.values("purchase_id")
    with deadline(QUERY_SECONDS):
        result.failed = PromotionPurchase.objects.due(as_of).filter(pk__in=stuck).count()
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
    chunk, targets = _look(candidates)
    while chunk:
        for purchase in chunk:
            try:
                tell(expire(purchase, targets[purchase.pk], at=result.as_of), run_id=result.run_id, at=result.as_of)
            except Exception:  # noqa: BLE001 - as in the cycle: poison holds whatever its kind
                yield False
            else:
                yield True
        chunk, targets = _look(candidates.filter(Place.of(chunk[-1]).behind))


def _look(purchases: PurchaseQuerySet) -> tuple[list[PromotionPurchase], Mapping[uuid.UUID, Sequence[Target]]]:
    """Return the first of `purchases`, and their targets."""
    with deadline(QUERY_SECONDS):
        chunk = list(purchases[:CHUNK])
        return chunk, targets_of(chunk)
