"""Events as the company's other programs record them: by plain SQL, in the transaction of the change."""

import json
import uuid
from datetime import UTC, datetime

import psycopg

from chaos.sales import Sale

TOPIC = "pin.promotion.purchase-changed.v1"

_EVENT = """
INSERT INTO promotion.outbox (event_id, event_type, aggregate_id, topic, key, payload, headers)
VALUES (%s, %s, %s, %s, %s, %s, %s)
"""


def tell(connection: psycopg.Connection, sale: Sale, event_id: uuid.UUID, *, version: int) -> None:
    """Record that the purchase is Active and how it stands."""
    value = {
        "eventId": str(event_id),
        "occurredAt": _text(datetime.now(UTC)),
        "correlationId": str(event_id),
        "purchaseId": str(sale.id),
        "tenantId": str(sale.tenant_id),
        "status": "Active",
        "packageKind": sale.package_kind,
        "paymentStatus": sale.payment_status,
        "startsAt": _text(sale.starts_at),
        "endsAt": _text(sale.ends_at),
        "version": version,
        "targets": [{"targetType": kind, "targetId": str(target)} for kind, target in sale.targets],
    }
    record(connection, event_id, "PromotionPurchaseChanged", sale.id, TOPIC, json.dumps(value))


def record(
    connection: psycopg.Connection, event_id: uuid.UUID, kind: str, subject: uuid.UUID, topic: str, value: str
) -> None:
    """Record any event of `subject`, which is its key too."""
    headers = {"ce_id": str(event_id), "content-type": "application/json"}
    connection.execute(_EVENT, [event_id, kind, subject, topic, str(subject), value, json.dumps(headers)])


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
