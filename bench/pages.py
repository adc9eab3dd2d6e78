"""Each admin page with a million purchases and a million messages: `python -m bench.pages`."""

from __future__ import annotations

import statistics
import sys
import time

from bench.world import database

LIMIT_MS = 500
ROUNDS = 5

# One company in ten purchases, few of them pending, the rest of 20,000; a tenth of all that run is overdue.
PURCHASES = """
INSERT INTO promotion.promotion_purchases
    (tenant_id, package_kind, status, payment_status, starts_at, ends_at, updated_at, version)
SELECT CASE WHEN number % 10 = 0 THEN md5('big')::uuid ELSE md5((number % 20000)::text)::uuid END,
       (ARRAY['Boost', 'Boost', 'Boost', 'Top', 'Top', 'Highlight'])[1 + number / 7 % 6], status,
       (ARRAY['NotRequired', 'Paid', 'Paid', 'Paid', 'Pending', 'Refunded'])[1 + number / 11 % 6],
       ends_at - interval '7 days', ends_at, least(ends_at, now()), 2
FROM generate_series(1, 1000000) AS number,
     LATERAL (SELECT CASE WHEN number % 1000 = 0 THEN 'Pending' WHEN number % 4 = 1 THEN 'Active'
                          WHEN number % 7 = 2 THEN 'Cancelled' ELSE 'Expired' END AS status) AS chosen,
     LATERAL (SELECT now() + CASE WHEN status IN ('Active', 'Pending') THEN number - 100000 ELSE -number * 30 END
                             * interval '1 second' AS ends_at) AS ends
"""
TARGETS = """
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, 'CatalogItem', gen_random_uuid() FROM promotion.promotion_purchases
"""
# All but a few published; the pending ones are old, as after an outage.
MESSAGES = """
INSERT INTO promotion.outbox
    (event_type, aggregate_id, topic, key, payload, headers, created_at, published_at, parked_at, attempts)
SELECT 'PromotionPurchaseChanged', id, 'pin.promotion.purchase-changed.v1', id::text,
       '{"status":"Expired","version":2,"filler":"' || repeat('x', 300) || '"}',
       jsonb_build_object('ce_correlationid', id), recorded,
       CASE WHEN number % 200 > 1 THEN recorded + interval '1 second' END,
       CASE WHEN number % 200 = 1 THEN recorded + interval '2 minutes' END, 1
FROM (SELECT id, row_number() OVER () AS number FROM promotion.promotion_purchases) AS purchase,
     LATERAL (SELECT now() - (1000000 - number) * interval '0.5 seconds' AS recorded) AS at
"""
STUCK = """
INSERT INTO promotion.expiration_failures (purchase_id, first_failed_at, last_failed_at, attempts, reason)
SELECT id, ends_at, now(), 9, 'IncompleteSnapshot: the purchase has no targets'
FROM promotion.promotion_purchases WHERE status = 'Active' ORDER BY ends_at LIMIT 2000
"""
RUNS = """
INSERT INTO promotion.expiration_runs
    (run_id, instance, as_of, finished_at, expired, failed, skipped_locked, duration_ms, lateness_seconds)
SELECT gen_random_uuid(), 'worker-' || number % 8, now() - number * interval '10 seconds',
       now() - number * interval '10 seconds', number % 200, 0, 0, 12, 30
FROM generate_series(0, 17280) AS number
"""

PURCHASE_LIST, OUTBOX_LIST = "/admin/promotion/promotionpurchase/", "/admin/outbox/outbox/"


def pages() -> list[str]:
    """Return the addresses of what an operator opens."""
    from outbox.models import Outbox
    from promotion.models import PromotionPurchase

    purchase = PromotionPurchase.objects.filter(status="Active").latest("ends_at")
    message = Outbox.objects.order_by("-id")[0]
    big = PromotionPurchase.objects.raw("SELECT md5('big')::uuid AS id")[0].pk
    filters = [
        "", "?p=200", "?status=all", "?status=pending", "?status=expired", "?status=cancelled", "?end=overdue",
        "?end=stuck", "?end=hour", "?status=expired&end=past-week", "?package_kind__exact=Highlight",
        "?status=cancelled&payment_status__exact=Refunded&package_kind__exact=Highlight",
        "?status=all&payment_status__exact=Failed", "?o=-3", f"?q={purchase.pk}", f"?q={big}",
        f"?q={purchase.tenant_id}", f"?tenant_id={big}&status=cancelled", "?q=nonsense",
    ]  # fmt: skip
    states = ["", "?p=200", "?state=pending", "?state=parked", "?state=skipped", "?state=published",
              "?state=published&p=200", "?topic=pin.promotion.purchase-changed.v1&state=pending",
              f"?q={message.event_id}", f"?q={purchase.pk}"]  # fmt: skip
    return [
        "/admin/",
        *(PURCHASE_LIST + query for query in filters),
        f"{PURCHASE_LIST}{purchase.pk}/change/",
        f"{PURCHASE_LIST}cancel/?id={purchase.pk}",
        f"{PURCHASE_LIST}{purchase.pk}/history/",
        *(OUTBOX_LIST + query for query in states),
        f"{OUTBOX_LIST}{message.pk}/change/",
        "/admin/promotion/expirationfailure/",
        "/admin/promotion/expirationrun/",
    ]


def fill() -> None:
    """Write the rows."""
    from django.db import connection

    with connection.cursor() as cursor:
        for statement in (PURCHASES, TARGETS, MESSAGES, STUCK, RUNS):
            cursor.execute(statement)
        cursor.execute("VACUUM ANALYZE")


def main() -> int:
    """Print the time of each page; return 1 if one is too slow."""
    with database():
        from django.conf import settings
        from django.contrib.auth import get_user_model
        from django.db import connection
        from django.test import Client
        from django.test.utils import CaptureQueriesContext

        fill()
        settings.ALLOWED_HOSTS = ["testserver"]
        client = Client()
        client.force_login(get_user_model().objects.create_superuser("bench"), settings.AUTHENTICATION_BACKENDS[1])
        slow = 0
        print(f"{'median':>8} {'worst':>8} {'queries':>8}  page (ms)")
        for page in pages():
            took = []
            for _ in range(ROUNDS):
                with CaptureQueriesContext(connection) as queries:
                    started = time.perf_counter()
                    status = client.get(page, secure=True).status_code
                    took.append((time.perf_counter() - started) * 1000)
                assert status == 200, (page, status)
            slow += statistics.median(took) > LIMIT_MS
            print(f"{statistics.median(took):8.0f} {max(took):8.0f} {len(queries):8}  {page}", flush=True)
            if "-v" in sys.argv:
                for query in queries.captured_queries:
                    if float(query["time"]) > 0.05:
                        print(f"      {query['time']} {query['sql'][:2000]}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
