"""Purchases that cannot be expired, in several ways, and how each is healed."""

import random
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import psycopg

from chaos.sales import TARGETS, Sale, random_sale

# Guards of another department, as it were: they refuse, or swallow, what concerns the purchases listed.
SCHEMA = """
CREATE SCHEMA chaos;
CREATE TABLE chaos.refused (purchase_id uuid PRIMARY KEY, how text NOT NULL);

CREATE FUNCTION chaos.refuse_purchase() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
    SELECT how INTO found FROM chaos.refused WHERE purchase_id = OLD.id;
    IF found = 'refuse-update' THEN RAISE EXCEPTION 'refused'; END IF;
    IF found = 'swallow-update' THEN RETURN NULL; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER chaos_refuse BEFORE UPDATE ON promotion.promotion_purchases
    FOR EACH ROW WHEN (NEW.status = 'Expired') EXECUTE FUNCTION chaos.refuse_purchase();

CREATE FUNCTION chaos.refuse_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
    SELECT how INTO found FROM chaos.refused WHERE purchase_id = NEW.aggregate_id;
    IF found = 'refuse-event' THEN RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'refused'; END IF;
    IF found = 'swallow-event' THEN RETURN NULL; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER chaos_refuse BEFORE INSERT ON promotion.outbox
    FOR EACH ROW WHEN (NEW.payload LIKE '%"Expired"%') EXECUTE FUNCTION chaos.refuse_event();
"""
BY_DATABASE = ("refuse-update", "swallow-update", "refuse-event", "swallow-event")
HEALING: Mapping[str, str] = MappingProxyType(
    {
        "no-targets": "INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)"
        " SELECT unnest(%(ids)s::uuid[]), 'CatalogItem', %(target)s",
        "unknown-package": "UPDATE promotion.promotion_purchases SET package_kind = 'Top' WHERE id = ANY(%(ids)s)",
        "unknown-target": "UPDATE promotion.promotion_purchase_targets SET target_type = 'NewsPost'"
        " WHERE purchase_id = ANY(%(ids)s)",
        "too-large": "DELETE FROM promotion.promotion_purchase_targets"
        " WHERE purchase_id = ANY(%(ids)s) AND target_type = 'NewsPost'",
        **dict.fromkeys(BY_DATABASE, "DELETE FROM chaos.refused WHERE purchase_id = ANY(%(ids)s)"),
    }
)


def poisonous_sales(dice: random.Random, how: str) -> tuple[list[Sale], Callable[[psycopg.Connection, Sale], None]]:
    """Return purchases, mostly older than all others, and what makes each of them poison in its own transaction."""
    count = 1 if how == "too-large" else dice.choice((1, 3, 10, 40))
    sales = [random_sale(dice) for _ in range(count)]
    for sale in sales:
        sale.ends_at = datetime.now(UTC) - timedelta(days=dice.uniform(0, 300))
        if how == "no-targets":
            sale.targets = []
        elif how == "unknown-package":
            sale.package_kind = "Banner"
        elif how == "unknown-target":
            sale.targets = [("Podcast", target) for _, target in sale.targets]
        elif how == "too-large":
            sale.targets = [("CatalogItem", TARGETS[0]), *(("NewsPost", uuid.uuid4()) for _ in range(14_000))]

    def make(connection: psycopg.Connection, sale: Sale) -> None:
        if how in BY_DATABASE:
            connection.execute("INSERT INTO chaos.refused VALUES (%s, %s)", [sale.id, how])

    return sales, make


def heal(connection: psycopg.Connection, dice: random.Random, how: str, ids: list[uuid.UUID]) -> None:
    """Make the purchases expirable."""
    connection.execute(HEALING[how], {"ids": ids, "target": dice.choice(TARGETS)})
