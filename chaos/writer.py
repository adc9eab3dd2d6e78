"""The other programs of the company: they sell purchases and prolong them by plain SQL, each change with its event."""

import random
import time
import uuid
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import psycopg

from chaos.actor import patiently
from chaos.ledger import Ledger
from chaos.sales import LIVES, Sale, random_sale
from chaos.telling import tell

_PURCHASE = """
INSERT INTO promotion.promotion_purchases (id, tenant_id, package_kind, status, payment_status, starts_at, ends_at)
VALUES (%s, %s, %s, 'Active', %s, %s, %s)
"""
_TARGET = "INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id) VALUES (%s, %s, %s)"
_PROLONG = """
UPDATE promotion.promotion_purchases SET ends_at = %s, version = version + 1, updated_at = now()
WHERE id = (SELECT id FROM promotion.promotion_purchases WHERE id = %s AND status = 'Active' FOR UPDATE SKIP LOCKED)
RETURNING version
"""

Poison = Callable[[psycopg.Connection, Sale], None]


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
                self.prolong(sale, datetime.now(UTC) + timedelta(seconds=dice.uniform(*LIVES)))

    def sell(self, sales: list[Sale], poison: Poison | None = None, *, private: bool = False) -> None:
        """Commit the purchases and, unless they are poison, their events; try until it is known to have happened.

        Nobody else prolongs or cancels `private` ones.
        """

        def once(connection: psycopg.Connection) -> bool:
            for sale in sales:
                _insert(connection, sale)
                if poison:
                    poison(connection, sale)
                else:
                    tell(connection, sale, sale.event_id, version=1)
            return True

        self._commit(once, sales[0].id)
        self._ledger.created.update(sale.id for sale in sales)
        if not (poison or private):
            self.recent.extend(sales)
        now = time.time()
        self._ledger.excuse([sale.id for sale in sales], until=now)

    def prolong(self, sale: Sale, ends_at: datetime) -> bool:
        """Move the end, unless the purchase has ended or somebody holds it; return whether it was done."""
        event_id = uuid.uuid4()

        def once(connection: psycopg.Connection) -> bool:
            row = connection.execute(_PROLONG, [ends_at, sale.id]).fetchone()
            if row:
                sale.ends_at = ends_at
                tell(connection, sale, event_id, version=row[0])
            return row is not None

        if done := self._commit(once, event_id):
            self._ledger.changes[sale.id] += 1
            self._ledger.excuse([sale.id], until=time.time())
        return done

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
