"""One transaction of the expiry: due purchases are locked, become Expired, and get one event each.

Note [Side by side]: PostgreSQL works while Python does. It looks the targets up while the purchases' objects are made,
and writes the changes while the events are built, and the lines of the log. Not so while a COPY is open: no timeout of
the server runs in it, and a process that is stopped there keeps its locks.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from django.db import OperationalError

from outbox.recording import Message, record
from pinpromo import failures, logs
from pinpromo.isolation import Unfit, write_all_but_refused
from pinpromo.transactions import bounded
from promotion import events
from promotion.claiming import Candidates, Claim, expiring
from promotion.models import ExpirationFailure, PromotionPurchase
from promotion.tracing import item_refused, item_span

log = structlog.get_logger("promotion.expiration")

SETTLE_SECONDS = 5.0  # for noting what became of the stuck, after a batch


class OutOfTime(OperationalError):  # noqa: N818
    """The cycle has used up its time; what is left waits for the next tick. Counts as the infrastructure's failure."""


@dataclass(slots=True, eq=False)
class Expiry:
    """A purchase that has been expired in memory, and the event that tells of it, once it is built."""

    purchase: PromotionPurchase
    targets: Sequence[events.Target]
    traceparent: str | None = None
    message: Message | None = None


@dataclass(slots=True)
class Batch:
    """What one transaction locked, and what became of it."""

    claim: Claim
    expired: list[Expiry] = field(default_factory=list)
    failed: dict[PromotionPurchase, Exception] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)  # of the log, for those that are expired


def expire_batch(candidates: Candidates, limit: int, *, run_id: uuid.UUID, at: datetime, until: float) -> Batch:
    """Lock up to `limit` of `candidates`, expire what can be expired `at` this moment, and commit it with its events.

    Raises OutOfTime at the monotonic instant `until`, and Django's database errors.
    """
    seconds = remaining(until)
    probe_until = until - seconds / 2
    with bounded(seconds=seconds):
        batch = Batch(candidates.lock(limit))
        log.info("batch_selected", count=len(batch.claim.purchases))
        expiries = _expire_in_memory(batch, run_id=run_id, at=at, telling=candidates.among is not None)
        _write(batch, expiries, run_id=run_id, at=at, probe_until=probe_until)
    return batch


def _expire_in_memory(batch: Batch, *, run_id: uuid.UUID, at: datetime, telling: bool) -> Sequence[Expiry]:
    """Expire one purchase after another; what must not be expired moves to the failed.

    `telling` builds the events as well: of what has failed before, nothing is written unless they can be.
    """
    expiries = []
    span_of = item_span(run_id)
    for purchase in batch.claim.purchases:
        targets = batch.claim.targets[purchase.pk]
        try:
            with span_of(purchase) as traceparent:
                expiry = expire(purchase, targets, at=at, traceparent=traceparent)
                if telling:
                    tell(expiry, run_id=run_id, at=at)
        except Exception as error:  # noqa: BLE001 - poison holds whatever its kind (R-10)
            batch.failed[purchase] = error
        else:
            expiries.append(expiry)
    return expiries


def expire(
    purchase: PromotionPurchase, targets: Sequence[events.Target], *, at: datetime, traceparent: str | None = None
) -> Expiry:
    """Expire `purchase` in memory. Whatever this raises makes the purchase poison."""
    purchase.expire(at=at)
    events.require_complete(purchase, targets)
    return Expiry(purchase, targets, traceparent)


def tell(expiry: Expiry, *, run_id: uuid.UUID, at: datetime) -> Message:
    """Return the event of `expiry`, built at the first call. Whatever this raises makes the purchase poison."""
    if expiry.message is None:
        expiry.message = events.purchase_changed(
            expiry.purchase,
            expiry.targets,
            occurred_at=at,
            correlation_id=run_id,
            traceparent=expiry.traceparent,
        )
    return expiry.message


def _write(batch: Batch, expiries: Sequence[Expiry], *, run_id: uuid.UUID, at: datetime, probe_until: float) -> None:
    """Write the changes and the events; what cannot be written moves to the failed."""

    def write(expiries: Sequence[Expiry]) -> None:
        with expiring([expiry.purchase.pk for expiry in expiries], at=at), logs.held_back() as batch.lines:
            messages = _tell(expiries, run_id=run_id, at=at)
            _log(expiries)
        record(messages)

    refused = write_all_but_refused(expiries, write, probe_until=probe_until)
    batch.expired = [expiry for expiry in expiries if expiry not in refused]
    batch.failed |= {expiry.purchase: error for expiry, error in refused.items()}


def _tell(expiries: Sequence[Expiry], *, run_id: uuid.UUID, at: datetime) -> Sequence[Message]:
    """Return the events. Raises Unfit for those that cannot be built."""
    messages, errors = [], dict[Expiry, Exception]()
    for expiry in expiries:
        try:
            messages.append(tell(expiry, run_id=run_id, at=at))
        except Exception as error:  # noqa: BLE001 - as above
            errors[expiry] = error
    if errors:
        raise Unfit(errors)
    return messages


def _log(expiries: Sequence[Expiry]) -> None:
    for expiry in expiries:
        log.info(
            "promotion_expired",
            purchase_id=str(expiry.purchase.pk),
            tenant_id=str(expiry.purchase.tenant_id),
            package_kind=expiry.purchase.package_kind,
            targets_count=len(expiry.targets),
        )


def settle(batch: Batch, *, at: datetime) -> None:
    """After the commit: log, and remember what failed. Raises Django's database errors."""
    if batch.expired:
        logs.write(batch.lines)
    reasons = {purchase.pk: failures.describe(error) for purchase, error in batch.failed.items()}
    for purchase_id, reason in reasons.items():
        log.error("item_failed", purchase_id=str(purchase_id), exception=reason)
        item_refused(purchase_id, reason)
    if reasons:
        with bounded(seconds=SETTLE_SECONDS):
            ExpirationFailure.objects.remember(reasons, at=at)


def remaining(until: float) -> float:
    """Return the seconds left until the monotonic instant `until`. Raises OutOfTime when there are none."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise OutOfTime("the cycle has used up its time")
    return seconds
