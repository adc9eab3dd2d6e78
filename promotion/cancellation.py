"""Cancellation: a manager or an operator ends a purchase before its time.

The other writer beside the expiry cycle. Both lock the row first, so whoever commits first wins (R-13): the cycle
passes over a row that is held here, and the guard refuses here what the cycle has expired.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import structlog

from outbox import recording
from outbox.tracing import creating
from pinpromo.isolation import Refused
from pinpromo.transactions import bounded
from promotion import events
from promotion.claiming import targets_of
from promotion.models import ExpirationFailure, PromotionPurchase

log = structlog.get_logger("promotion.cancellation")

STATEMENT_SECONDS = 10.0
LOCK_SECONDS = 5.0  # how long a row that somebody else holds is waited for


class StaleVersion(ValueError):  # noqa: N818 - a refusal, in the words of the domain
    """The purchase has changed since the caller looked at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """A cancelled purchase as it stands now, with the event that tells of it."""

    purchase: PromotionPurchase
    targets: Sequence[events.Target]
    message: recording.Message


def cancel(
    purchase_id: uuid.UUID,
    *,
    tenant_id: uuid.UUID | None,
    at: datetime,
    correlation_id: uuid.UUID,
    expected_versions: Collection[int] | None = None,
    audit: Callable[[Cancellation], None] = lambda _cancellation: None,
) -> Cancellation:
    """Cancel the purchase and record its event, in one transaction of its own.

    `tenant_id` limits the caller to the purchases of one company; None is for operators. With `expected_versions`
    nothing is done unless the purchase still has one of them. `audit` is called inside the transaction.
    Raises PromotionPurchase.DoesNotExist, StaleVersion, InvalidTransition, Refused, recording.UnfitMessage when even
    the purchase alone is too large to be told of, or Django's database errors: those of the infrastructure
    (pinpromo.failures) when the row stays locked for more than LOCK_SECONDS.
    """
    with bounded(seconds=STATEMENT_SECONDS, lock_seconds=LOCK_SECONDS):
        purchase = _lock(purchase_id, tenant_id)
        seen = purchase.version
        purchase.cancel(at=at)
        if expected_versions is not None and seen not in expected_versions:
            raise StaleVersion(f"the purchase has version {seen}")
        cancellation = _tell(purchase, at=at, correlation_id=correlation_id)
        _write(purchase, seen=seen)
        recording.record([cancellation.message])
        audit(cancellation)
    log.info(
        "promotion_cancelled",
        purchase_id=str(purchase.pk),
        tenant_id=str(purchase.tenant_id),
        package_kind=purchase.package_kind,
        targets_count=len(cancellation.targets),
        correlation_id=str(correlation_id),
    )
    return cancellation


def _lock(purchase_id: uuid.UUID, tenant_id: uuid.UUID | None) -> PromotionPurchase:
    purchases = PromotionPurchase.objects.select_for_update()
    if tenant_id is not None:
        purchases = purchases.filter(tenant_id=tenant_id)
    return purchases.get(pk=purchase_id)


def _tell(purchase: PromotionPurchase, *, at: datetime, correlation_id: uuid.UUID) -> Cancellation:
    """Build the event, also of a purchase that the cycle finds poison: it says what there is to say."""
    targets = targets_of([purchase])[purchase.pk]
    with creating(events.TOPIC, key=str(purchase.pk), correlation_id=str(correlation_id)) as traceparent:
        tell = partial(
            events.purchase_changed, purchase, occurred_at=at, correlation_id=correlation_id, traceparent=traceparent
        )
        try:
            message = tell(targets)
        except recording.UnfitMessage:  # more targets than fit: the purchase's id is what consumers need most
            message = tell([])
    return Cancellation(purchase=purchase, targets=targets, message=message)


def _write(purchase: PromotionPurchase, *, seen: int) -> None:
    """Write exactly what `cancel` changed. The version in the filter holds even if the lock one day does not."""
    changed = PromotionPurchase.objects.filter(pk=purchase.pk, version=seen).update(
        status=purchase.status, updated_at=purchase.updated_at, version=purchase.version
    )
    if changed != 1:
        raise Refused("the purchase was not updated")
    ExpirationFailure.objects.filter(pk=purchase.pk).delete()
