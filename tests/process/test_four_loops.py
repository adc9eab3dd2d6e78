"""Four loops, a one-off now and then, a stream of purchases and of cancels; a checker that knows SQL alone.

FOUR_LOOPS_SECONDS is how long (`make fuzz`: two minutes); in the suite it is short.
"""

import contextlib
import os
import random
import threading
import time
import uuid

import psycopg
import pytest
from django.utils import timezone

from devstack.ports import free_port
from promotion.cancellation import cancel
from promotion.models import InvalidTransition
from tests.concurrency.workers import Threads
from tests.programs import Program, database_url, eventually, manage

SECONDS = float(os.environ.get("FOUR_LOOPS_SECONDS", "12"))
LATEST = 20  # seconds that a purchase may be overdue: twenty intervals, for a machine that is busy otherwise

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(SECONDS + 180)]

BUY = """
WITH purchase AS (
    INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, payment_status, starts_at, ends_at)
    SELECT gen_random_uuid(), 'Boost', 'Active', 'Paid', now() - interval '9 days',
           clock_timestamp() + (random() * 4 - 1) * interval '1 s'
    FROM generate_series(1, %s) RETURNING id
), target AS (
    INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
    SELECT id, 'NewsPost', gen_random_uuid() FROM purchase, generate_series(1, 2)
)
SELECT id FROM purchase
"""
# Each finds what must never be there, in one snapshot, however busy everybody is.
BROKEN = {
    "an end without its one event, or an event without its end": """
        SELECT p.id, p.status, count(o.id) FROM promotion.promotion_purchases p
        LEFT JOIN promotion.outbox o ON o.aggregate_id = p.id GROUP BY p.id, p.status
        HAVING count(o.id) <> CASE WHEN p.status IN ('Expired', 'Cancelled') THEN 1 ELSE 0 END""",
    "an event of no purchase": """
        SELECT id FROM promotion.outbox o
        WHERE NOT EXISTS (SELECT FROM promotion.promotion_purchases p WHERE p.id = o.aggregate_id)""",
    "a version that was not raised exactly once": """
        SELECT id, status, version FROM promotion.promotion_purchases
        WHERE version <> CASE WHEN status = 'Active' THEN 1 ELSE 2 END""",
    "an event that tells another story than the row": """
        SELECT p.id, o.payload FROM promotion.outbox o JOIN promotion.promotion_purchases p ON p.id = o.aggregate_id
        WHERE (o.payload::jsonb->>'status', (o.payload::jsonb->>'version')::int, o.payload::jsonb->>'purchaseId',
               (o.payload::jsonb->>'occurredAt')::timestamptz, jsonb_array_length(o.payload::jsonb->'targets'), o.key)
              IS DISTINCT FROM (p.status, p.version, p.id::text, p.updated_at, 2, p.id::text)""",
    "an expiry before the end": """
        SELECT p.id FROM promotion.promotion_purchases p JOIN promotion.outbox o ON o.aggregate_id = p.id
        WHERE p.status = 'Expired' AND least(p.updated_at, o.created_at) < p.ends_at""",
    "a purchase that was forgotten": f"""
        SELECT id FROM promotion.promotion_purchases
        WHERE status = 'Active' AND ends_at < clock_timestamp() - interval '{LATEST} s'""",
    "a purchase that failed": "SELECT purchase_id, reason FROM promotion.expiration_failures",
}


def broken(link):
    """What is wrong at this moment, by invariant."""
    found = {promise: link.execute(sql).fetchall() for promise, sql in BROKEN.items()}
    return {promise: rows[:5] for promise, rows in found.items() if rows}


class Market:
    """Buys and cancels until `over`; cancels hit purchases whose end is near."""

    def __init__(self):
        self.over = threading.Event()
        self.bought, self.cancelled = [], 0

    def buy(self):
        with psycopg.connect(database_url(), autocommit=True) as link:
            while not self.over.wait(0.05):
                self.bought += [row[0] for row in link.execute(BUY, [random.randint(1, 8)]).fetchall()]

    def cancel(self):
        while not self.over.wait(0.02):
            for purchase in self.bought[-20:-1:7]:
                with contextlib.suppress(InvalidTransition):
                    cancel(purchase, tenant_id=None, at=timezone.now(), correlation_id=uuid.uuid4())
                    self.cancelled += 1


def test_nothing_is_ever_wrong():
    market, ends_at = Market(), time.monotonic() + SECONDS
    loop = ("expire_promotions", "--loop", "--interval", "1", "--drain", "--batch-size")
    with contextlib.ExitStack() as stack, Threads(2) as threads:
        loops = [
            stack.enter_context(Program(*loop, size, "--ops-port", free_port() if size == 3 else 0))
            for size in (3, 20, 50, 200)
        ]
        streams = [threads.submit(market.buy), threads.submit(market.cancel)]
        try:
            with psycopg.connect(database_url(), autocommit=True) as link:
                while time.monotonic() < ends_at:
                    assert broken(link) == {}
                    assert manage("expire_promotions", "--batch-size", 10).returncode == 0
                    assert [each.process.poll() for each in loops] == [None] * 4
                market.over.set()
                left = "SELECT count(*) FROM promotion.promotion_purchases WHERE status = 'Active'"
                eventually(lambda: link.execute(left).fetchone() == (0,))
                assert broken(link) == {}
                ended = dict(link.execute("SELECT status, count(*) FROM promotion.promotion_purchases GROUP BY 1"))
        finally:
            market.over.set()
        assert [stream.result() for stream in streams] == [None, None]
        assert [each.stop() for each in loops] == [0] * 4
    assert ended["Cancelled"] == market.cancelled
    assert sum(ended.values()) == len(market.bought)
    assert ended["Expired"] > SECONDS
    shares = [each.count("promotion_expired") for each in loops]
    assert sum(share > 0 for share in shares) > 1, shares
    print(f"{ended} in {SECONDS:g} s; by loop: {shares}")
