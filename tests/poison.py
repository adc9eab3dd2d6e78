"""Purchases that cannot be expired, of every kind: found in Python, in the purchase's row, in the event's row."""

import uuid

from django.db import connection

from tests.factories import PurchaseFactory

HOSTILE_TENANT = uuid.UUID("00000000-0000-4000-8000-00000bad0bad")

# What somebody else may have added to the database: a trigger that refuses, or swallows, the rows of one tenant.
_TRIGGER = """
CREATE FUNCTION public.test_hostile() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    {action}
END $$;
CREATE TRIGGER test_hostile BEFORE {event} ON promotion.{table}
    FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION public.test_hostile()
"""
_REFUSE = "RAISE EXCEPTION 'the row holds %', NEW USING ERRCODE = 'check_violation', CONSTRAINT = 'test_hostile';"
_SWALLOW = "RETURN NULL;"
_PURCHASE = {"event": "UPDATE", "table": "promotion_purchases", "condition": f"NEW.tenant_id = '{HOSTILE_TENANT}'"}
_EVENT = {"event": "INSERT", "table": "outbox", "condition": f"NEW.payload LIKE '%{HOSTILE_TENANT}%'"}
_TRIGGERS = {
    "row refused": {"action": _REFUSE, **_PURCHASE},
    "row swallowed": {"action": _SWALLOW, **_PURCHASE},
    "event refused": {"action": _REFUSE, **_EVENT},
    "event swallowed": {"action": _SWALLOW, **_EVENT},
}

# kind -> the purchase's fields
KINDS = {
    "no targets": {"targets": 0},
    "unknown package kind": {"package_kind": "Gold"},
    "unknown target type": {"targets__target_type": "Video"},
    "version exhausted": {"version": 2**31 - 1},
    "version not positive": {"version": -1},
    **{kind: {"tenant_id": HOSTILE_TENANT} for kind in _TRIGGERS},
}


def create(kind, count=1, **fields):
    """Create due purchases of that kind, and the trigger that makes them poison, if it takes one."""
    if kind in _TRIGGERS:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION IF EXISTS public.test_hostile CASCADE")
            cursor.execute(_TRIGGER.format(**_TRIGGERS[kind]))
    return PurchaseFactory.create_batch(count, **KINDS[kind] | fields)


def heal_database():
    """Take the trigger off again."""
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION IF EXISTS public.test_hostile CASCADE")
