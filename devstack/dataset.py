"""A realistic set of purchases for the demonstration: the same for the same seed, but for the moment it is made."""

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import psycopg

COMPANIES = 50
PACKAGE_KINDS = ("Boost", "Top", "Highlight")
PAYMENT_STATUSES = ("NotRequired", "Pending", "Paid", "Failed", "Refunded")
TARGET_TYPES = ("CatalogItem", "NewsPost")


@dataclass(frozen=True)
class Group:
    """Purchases of one sort: how many, their status, and between which seconds from now they end."""

    name: str
    count: int
    status: str
    ends_from: float
    ends_to: float
    package_kinds: tuple[str, ...] = PACKAGE_KINDS
    target_types: tuple[str, ...] = TARGET_TYPES
    targets: tuple[int, int] = (1, 5)


DAY = 86_400.0
# 2,000 in all.
GROUPS = (
    Group("due", 1_100, "Active", -3 * DAY, -1),
    Group("ending", 144, "Active", 3, 14),
    Group("running", 450, "Active", 600, 30 * DAY),
    Group("pending", 50, "Pending", DAY, 30 * DAY),
    Group("cancelled", 125, "Cancelled", -10 * DAY, 10 * DAY),
    Group("expired", 125, "Expired", -30 * DAY, -DAY),
    Group("poison", 3, "Active", -4 * DAY, -3 * DAY, targets=(0, 0)),
    Group("poison", 2, "Active", -4 * DAY, -3 * DAY, package_kinds=("Banner",)),
    Group("poison", 1, "Active", -4 * DAY, -3 * DAY, target_types=("Podcast",)),
)


@dataclass(frozen=True)
class Purchase:
    """One row, with its targets as pairs of type and id."""

    id: uuid.UUID
    group: str
    tenant_id: uuid.UUID
    package_kind: str
    status: str
    payment_status: str
    starts_at: datetime
    ends_at: datetime
    version: int
    targets: list[tuple[str, uuid.UUID]] = field(default_factory=list)


def make(*, seed: int, now: datetime) -> list[Purchase]:
    """Return the purchases, with the moments of their ends counted from `now`."""
    dice = random.Random(seed)
    companies = [_uuid(dice) for _ in range(COMPANIES)]
    return [purchase for group in GROUPS for purchase in _members(group, dice, companies, now)]


def load(database_url: str, purchases: list[Purchase]) -> None:
    """Write the purchases, with psycopg alone: as another program would."""
    with psycopg.connect(database_url) as connection, connection.cursor() as cursor:
        with cursor.copy(
            "COPY promotion.promotion_purchases (id, tenant_id, package_kind, status, payment_status,"
            " starts_at, ends_at, version) FROM STDIN"
        ) as copy:
            for one in purchases:
                row = (one.id, one.tenant_id, one.package_kind, one.status, one.payment_status)
                copy.write_row((*row, one.starts_at, one.ends_at, one.version))
        with cursor.copy(
            "COPY promotion.promotion_purchase_targets (purchase_id, target_type, target_id) FROM STDIN"
        ) as copy:
            for one in purchases:
                for target_type, target_id in one.targets:
                    copy.write_row((one.id, target_type, target_id))
        cursor.execute("ANALYZE promotion.promotion_purchases, promotion.promotion_purchase_targets")


def _members(group: Group, dice: random.Random, companies: list[uuid.UUID], now: datetime) -> Iterator[Purchase]:
    for _ in range(group.count):
        ends_at = now + timedelta(seconds=dice.uniform(group.ends_from, group.ends_to))
        yield Purchase(
            id=_uuid(dice),
            group=group.name,
            tenant_id=dice.choice(companies),
            package_kind=dice.choice(group.package_kinds),
            status=group.status,
            payment_status=dice.choice(PAYMENT_STATUSES),
            starts_at=(ends_at - timedelta(days=dice.choice((1, 3, 7, 14, 30)))).astimezone(UTC),
            ends_at=ends_at,
            version=dice.randint(1, 4),
            targets=[(dice.choice(group.target_types), _uuid(dice)) for _ in range(dice.randint(*group.targets))],
        )


def _uuid(dice: random.Random) -> uuid.UUID:
    return uuid.UUID(int=dice.getrandbits(128), version=4)
