"""The other programs of the company: they sell purchases and prolong them by plain SQL, each change with its event."""

import json
import random
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import psycopg

from chaos.actor import patiently
from chaos.ledger import Ledger

TOPIC = "pin.promotion.purchase-changed.v1"
COMPANIES = [uuid.UUID(int=number, version=4) for number in range(1, 21)]
TARGETS = [uuid.UUID(int=number, version=4) for number in range(1, 301)]
LIVES = (0.5, 20.0)  # seconds from the sale to the end
LONG_SHARE = 0.15  # of purchases that outlive the campaign
LATE_SHARE = 0.1  # of purchases that are due when they are sold

_PURCHASE = """
INSERT INTO promotion.promotion_purchases (id, tenant_id, package_kind, status, payment_status, starts_at, ends_at)
VALUES (%s, %s, %s, 'Active', %s, %s, %s)
"""
_TARGET = "INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id) VALUES (%s, %s, %s)"
_EVENT = """
INSERT INTO promotion.outbox (event_id, event_type, aggregate_id, topic, key, payload, headers)
VALUES (%s, 'PromotionPurchaseChanged', %s, %s, %s, %s, %s)
"""
_PROLONG = """
UPDATE promotion.promotion_purchases SET ends_at = %s, version = version + 1, updated_at = now()
WHERE id = (SELECT id FROM promotion.promotion_purchases WHERE id = %s AND status = 'Active' FOR UPDATE SKIP LOCKED)
RETURNING version
"""

Poison = Callable[[psycopg.Connection, "Sale"], None]


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


class Writer:
    """Sells and prolongs. An answer lost on the way is found out about: by the event, which commits with the change."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self._url = url
        self._ledger = ledger
        self.recent: deque[Sale] = deque(maxlen=600)

    def act(self, dice: random.Random) -> None:
        """Sell some, prolong one or two."""
        self.sell([random_sale(dice) for _ in range(dice.choice((1, 2, 5, 5, 20)))])
        for sale in dice.sample(list(self.recent), min(2, len(self.recent))):
            if dice.random() < 0.5:
                self._prolong(sale, datetime.now(UTC) + timedelta(seconds=dice.uniform(*LIVES)))

    def sell(self, sales: list[Sale], poison: Poison | None = None) -> None:
        """Commit the purchases and, unless they are poison, their events; try until it is known to have happened."""

        def once(connection: psycopg.Connection) -> bool:
            for sale in sales:
                _insert(connection, sale)
                if poison:
                    poison(connection, sale)
                else:
                    _tell(connection, sale, sale.event_id, version=1)
            return True

        self._commit(once, sales[0].id)
        self._ledger.created.update(sale.id for sale in sales)
        if not poison:
            self.recent.extend(sales)
        now = time.time()
        self._ledger.excuse([sale.id for sale in sales], until=now)

    def _prolong(self, sale: Sale, ends_at: datetime) -> None:
        event_id = uuid.uuid4()

        def once(connection: psycopg.Connection) -> bool:
            row = connection.execute(_PROLONG, [ends_at, sale.id]).fetchone()
            if row:
                sale.ends_at = ends_at
                _tell(connection, sale, event_id, version=row[0])
            return row is not None

        if self._commit(once, event_id):
            self._ledger.changes[sale.id] += 1
            self._ledger.excuse([sale.id], until=time.time())

    def _commit(self, once: Callable[[psycopg.Connection], bool], mark: uuid.UUID) -> bool:
        """Return whether it was done; `mark` is the id of a purchase or an event that is there if it was."""
        done: list[bool] = []

        def attempt() -> None:
            with self._connected() as connection, connection.transaction():
                found = connection.execute(
                    "SELECT EXISTS (SELECT FROM promotion.outbox WHERE event_id = %(id)s)"
                    "    OR EXISTS (SELECT FROM promotion.promotion_purchases WHERE id = %(id)s)",
                    {"id": mark},
                ).fetchone()
                done.append(bool(found and found[0]) or once(connection))

        patiently(attempt, (psycopg.Error,))
        return done[-1]

    def _connected(self) -> psycopg.Connection:
        """Return a connection for one transaction: the last one may have broken."""
        return psycopg.connect(self._url, connect_timeout=5, application_name="chaos-writer", autocommit=True)


def _insert(connection: psycopg.Connection, sale: Sale) -> None:
    values = (sale.id, sale.tenant_id, sale.package_kind, sale.payment_status, sale.starts_at, sale.ends_at)
    connection.execute(_PURCHASE, values)
    with connection.cursor() as cursor:
        cursor.executemany(_TARGET, [(sale.id, kind, target) for kind, target in sale.targets])


def _tell(connection: psycopg.Connection, sale: Sale, event_id: uuid.UUID, *, version: int) -> None:
    now = _text(datetime.now(UTC))
    value = {
        "eventId": str(event_id),
        "occurredAt": now,
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
    headers = {"ce_id": str(event_id), "content-type": "application/json"}
    key = str(sale.id)
    connection.execute(_EVENT, [event_id, sale.id, TOPIC, key, json.dumps(value), json.dumps(headers)])


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
