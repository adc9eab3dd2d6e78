"""Purchases as they are sold: whose, of what, until when."""

import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

COMPANIES = [uuid.UUID(int=number, version=4) for number in range(1, 21)]
TARGETS = [uuid.UUID(int=number, version=4) for number in range(1, 301)]
LIVES = (0.5, 20.0)  # seconds from the sale to the end
LONG_SHARE = 0.15  # of purchases that outlive the campaign
LATE_SHARE = 0.1  # of purchases that are due when they are sold


@dataclass(slots=True)
class Sale:
    """A purchase as it is sold."""

    starts_at: datetime
    ends_at: datetime
    id: uuid.UUID = field(default_factory=uuid.uuid4)
    tenant_id: uuid.UUID = COMPANIES[0]
    package_kind: str = "Boost"
    payment_status: str = "Paid"
    targets: list[tuple[str, uuid.UUID]] = field(default_factory=list)
    event_id: uuid.UUID = field(default_factory=uuid.uuid4)


def random_sale(dice: random.Random) -> Sale:
    """Return a purchase with one to four of the few hundred targets; most end within seconds."""
    if dice.random() < LONG_SHARE:
        left = dice.uniform(7_200, 86_400)
    elif dice.random() < LATE_SHARE:
        left = -dice.uniform(0, 3_600)
    else:
        left = dice.uniform(*LIVES)
    ends_at = datetime.now(UTC) + timedelta(seconds=left)
    return Sale(
        starts_at=ends_at - timedelta(days=3),
        ends_at=ends_at,
        tenant_id=dice.choice(COMPANIES),
        package_kind=dice.choice(("Boost", "Top", "Highlight")),
        payment_status=dice.choice(("NotRequired", "Pending", "Paid", "Failed", "Refunded")),
        targets=[
            (dice.choice(("CatalogItem", "NewsPost")), target) for target in dice.sample(TARGETS, dice.randint(1, 4))
        ],
    )
