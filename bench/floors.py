"""What is compared with: the fastest way in plain SQL, a bare producer, and the straightforward way in Django."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import psycopg

if TYPE_CHECKING:
    from promotion.models import PromotionPurchase

# One statement that selects, changes and records what the cycle does, with the same bytes in the events.
EXPIRE = """
WITH due AS (
    SELECT id FROM promotion.promotion_purchases
    WHERE status = 'Active' AND ends_at <= %(as_of)s
    ORDER BY ends_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), expired AS (
    UPDATE promotion.promotion_purchases AS purchase
    SET status = 'Expired', updated_at = %(as_of)s, version = version + 1
    FROM due WHERE purchase.id = due.id
    RETURNING purchase.*, gen_random_uuid() AS event_id
), listed AS (
    SELECT purchase_id, string_agg(
        format('{"targetType":"%%s","targetId":"%%s"}', target_type, target_id), ',' ORDER BY id) AS targets
    FROM promotion.promotion_purchase_targets WHERE purchase_id IN (SELECT id FROM due) GROUP BY purchase_id
)
INSERT INTO promotion.outbox (event_id, event_type, aggregate_id, topic, key, payload, headers)
SELECT event_id, 'PromotionPurchaseChanged', id, 'pin.promotion.purchase-changed.v1', id::text,
    format('{"eventId":"%%s","occurredAt":"%%s","correlationId":"%%s","purchaseId":"%%s","tenantId":"%%s",'
           '"status":"%%s","packageKind":"%%s","paymentStatus":"%%s","startsAt":"%%s","endsAt":"%%s",'
           '"version":%%s,"targets":[%%s]}',
           event_id, %(occurred)s::text, %(run_id)s::text, id, tenant_id, status, package_kind, payment_status,
           to_char(starts_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
           to_char(ends_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), version, targets),
    jsonb_build_object('ce_specversion', '1.0', 'ce_id', event_id, 'ce_type', 'pin.promotion.purchase-changed.v1',
        'ce_source', '/pin/promotion', 'ce_subject', id, 'ce_time', %(occurred)s::text,
        'ce_correlationid', %(run_id)s::text, 'content-type', 'application/json')
FROM expired JOIN listed ON purchase_id = id
"""


def expire_in_sql(link: psycopg.Connection, as_of: datetime, limit: int) -> int:
    """Run the statement on an autocommit connection; return how many were expired."""
    occurred = as_of.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
    parameters = {"as_of": as_of, "limit": limit, "occurred": occurred, "run_id": str(uuid.uuid4())}
    return link.execute(EXPIRE, parameters).rowcount


def expire_naively(as_of: datetime, limit: int) -> int:
    """Load, then save and create row by row in one transaction: how one writes it first."""
    from django.db import transaction

    from promotion.models import PromotionPurchase

    run_id = uuid.uuid4()
    with transaction.atomic():
        due = PromotionPurchase.objects.select_for_update(skip_locked=True).filter(status="Active", ends_at__lte=as_of)
        purchases = list(due.order_by("ends_at", "id")[:limit])
        for purchase in purchases:
            expire_row(purchase, as_of, run_id)
    return len(purchases)


def expire_row(purchase: PromotionPurchase, as_of: datetime, run_id: uuid.UUID) -> None:
    """Save one purchase as expired, and create its message."""
    from outbox.models import Outbox
    from promotion import events

    purchase.expire(at=as_of)
    purchase.save()
    targets = [events.Target(target.target_type, target.target_id) for target in purchase.targets.order_by("id")]
    message = events.purchase_changed(purchase, targets, occurred_at=as_of, correlation_id=run_id)
    Outbox.objects.create(
        event_id=message.event_id,
        event_type=message.event_type,
        aggregate_id=message.aggregate_id,
        topic=message.topic,
        key=message.key,
        payload=message.payload,
        headers=json.loads(json.dumps(message.headers)),
    )


class Record(NamedTuple):
    """A Kafka message, in memory."""

    topic: str
    key: bytes
    value: bytes
    headers: list[tuple[str, str | bytes | None]]


def producing(bootstrap: str, records: Sequence[Record]) -> Callable[[], None]:
    """Return what publishes `records` as fast as it can, with the relay's guarantees, by a producer that is warm."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "batch.size": 131_072,
        }
    )

    def publish() -> None:
        acknowledged = 0

        def count(error: object, _record: object) -> None:
            nonlocal acknowledged
            acknowledged += error is None

        for topic, key, value, headers in records:
            producer.produce(topic, value, key, headers=headers, on_delivery=count)
            producer.poll(0)
        producer.flush()
        assert acknowledged == len(records)

    return publish
