"""What the company is told of a purchase: pure builders of the event `PromotionPurchaseChanged`."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from outbox.recording import Message
from promotion.models import PromotionPurchase, PromotionPurchaseTarget

EVENT_TYPE = "PromotionPurchaseChanged"
TOPIC = "pin.promotion.purchase-changed.v1"
SOURCE = "/pin/promotion"

_PACKAGE_KINDS = frozenset(PromotionPurchase.PackageKind.values)
_TARGET_TYPES = frozenset(PromotionPurchaseTarget.TargetType.values)


class Target(NamedTuple):
    target_type: str
    target_id: uuid.UUID


class IncompleteSnapshot(ValueError):  # noqa: N818
    """The purchase is in a state that the event's contract cannot express."""


def require_complete(purchase: PromotionPurchase, targets: Sequence[Target]) -> None:
    """Raise IncompleteSnapshot unless consumers can take the boost off from this purchase's event."""
    if not targets:
        raise IncompleteSnapshot("the purchase has no targets")
    if purchase.package_kind not in _PACKAGE_KINDS:
        raise IncompleteSnapshot("the package kind is unknown")
    if any(target.target_type not in _TARGET_TYPES for target in targets):
        raise IncompleteSnapshot("a target's type is unknown")
    if purchase.version < 1:
        raise IncompleteSnapshot("the version is not positive")


def purchase_changed(
    purchase: PromotionPurchase,
    targets: Sequence[Target],
    *,
    occurred_at: datetime,
    correlation_id: uuid.UUID,
    traceparent: str | None = None,
) -> Message:
    """Return the message that tells of the purchase as it stands now, after its change."""
    event_id = uuid.uuid4()
    occurred, correlation = _occasion(occurred_at, correlation_id)
    key = str(purchase.pk)
    value = {
        "eventId": event_id,
        "occurredAt": occurred,
        "correlationId": correlation,
        **snapshot(purchase, targets),
    }
    headers = {
        "ce_specversion": "1.0",
        "ce_id": str(event_id),
        "ce_type": TOPIC,
        "ce_source": SOURCE,
        "ce_subject": key,
        "ce_time": occurred,
        "ce_correlationid": correlation,
        "content-type": "application/json",
    }
    if traceparent:
        headers["traceparent"] = traceparent
    return Message(
        event_id=event_id,
        event_type=EVENT_TYPE,
        aggregate_id=purchase.pk,
        topic=TOPIC,
        key=key,
        payload=orjson.dumps(value).decode(),
        headers=headers,
    )


@lru_cache(maxsize=16)
def _occasion(occurred_at: datetime, correlation_id: uuid.UUID) -> tuple[str, str]:
    """Return both as text, the same for all events of a batch."""
    return rfc3339(occurred_at), str(correlation_id)


def snapshot(purchase: PromotionPurchase, targets: Sequence[Target]) -> dict[str, Any]:
    """Return the purchase in the words that other programs know it by; ids are still UUIDs, for the encoder."""
    return {
        "purchaseId": purchase.pk,
        "tenantId": purchase.tenant_id,
        "status": str(purchase.status),
        "packageKind": purchase.package_kind,
        "paymentStatus": purchase.payment_status,
        "startsAt": rfc3339(purchase.starts_at),
        "endsAt": rfc3339(purchase.ends_at),
        "version": purchase.version,
        "targets": [{"targetType": kind, "targetId": target_id} for kind, target_id in targets],
    }


def rfc3339(instant: datetime) -> str:
    """Return `instant` in UTC to the microsecond, such as `2026-01-31T09:30:00.000000Z`."""
    return instant.astimezone(UTC).isoformat("T", "microseconds")[: -len("+00:00")] + "Z"
