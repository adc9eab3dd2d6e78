"""The outbox, filled by plain SQL with messages as long as real ones."""

from __future__ import annotations

from contextlib import nullcontext

from bench import world
from bench.bulk import without_indexes

TOPIC = "pin.promotion.purchase-changed.v1"
TABLE = "promotion.outbox"
MANY = 100_000  # rows from which on it is faster to build the indexes afterwards
FILL = """
INSERT INTO promotion.outbox (event_id, event_type, aggregate_id, topic, key, payload, headers, published_at)
SELECT event_id, 'PromotionPurchaseChanged', id, 'pin.promotion.purchase-changed.v1', id::text,
       format('{{"eventId":"%%s","occurredAt":"2026-01-31T09:30:00.123456Z","correlationId":"%%s","purchaseId":"%%s",'
              '"tenantId":"%%s","status":"Expired","packageKind":"Highlight","paymentStatus":"NotRequired",'
              '"startsAt":"2026-01-24T09:30:00.123456Z","endsAt":"2026-01-31T09:29:00.123456Z","version":3,'
              '"targets":[{{"targetType":"CatalogItem","targetId":"%%s"}},{{"targetType":"NewsPost","targetId":"%%s"}}]}}',
              event_id, run_id, id, tenant_id, tenant_id, run_id),
       jsonb_build_object('ce_specversion', '1.0', 'ce_id', event_id, 'ce_type', 'pin.promotion.purchase-changed.v1',
           'ce_source', '/pin/promotion', 'ce_subject', id, 'ce_time', '2026-01-31T09:30:00.123456Z',
           'ce_correlationid', run_id, 'content-type', 'application/json'),
       {published}
FROM (SELECT gen_random_uuid() AS id, gen_random_uuid() AS event_id, gen_random_uuid() AS tenant_id,
             gen_random_uuid() AS run_id
      FROM generate_series(1, %(count)s)) AS ids
"""


def fill(count: int, *, published: str = "NULL") -> None:
    """Add messages; `published` is SQL."""
    with without_indexes(TABLE) if count >= MANY else nullcontext():
        world.execute(FILL.format(published=published), {"count": count})


def settle() -> None:
    """Leave nothing to be done behind the back of a measurement."""
    world.execute(f"VACUUM ANALYZE {TABLE}")
    world.execute("CHECKPOINT")
