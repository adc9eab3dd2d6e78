"""Faults that other clients of the database cause: locks, snapshots, too many connections, poisonous rows."""

import contextlib
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from chaos import poison
from chaos.actor import patiently
from chaos.ledger import Ledger
from chaos.plan import Fault
from chaos.writer import Writer

TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND application_name LIKE 'pinpromo%'
"""
# Of the rows that end soon or have ended: what a batch of somebody else's, or a slow cancellation, would hold.
LOCK_SOME = """
SELECT id FROM promotion.promotion_purchases
WHERE status = 'Active' AND ends_at < now() + interval '10 seconds'
ORDER BY ends_at LIMIT %s FOR UPDATE SKIP LOCKED
"""
RECONNECT_SECONDS = 15.0
POSSIBLE_WAIT = 120.0  # seconds for the database to be back, to heal what was made ill


class DatabaseFaults:
    """Works past the proxy, with connections of its own."""

    def __init__(self, url: str, writer: Writer, ledger: Ledger) -> None:
        self._url = url
        self._writer = writer
        self._ledger = ledger

    def terminate_backends(self) -> None:
        """End every connection of the product, from within the server."""
        with self._connected() as connection:
            connection.execute(TERMINATE)

    @contextmanager
    def outbox_locked(self) -> Iterator[None]:
        """Keep writers out of the outbox, as a migration or an index build does."""
        with self._connected() as connection, connection.transaction():
            connection.execute("SET LOCAL lock_timeout = '3s'")
            connection.execute("LOCK TABLE promotion.outbox IN SHARE MODE")
            yield

    def lock_purchases(self, fault: Fault) -> None:
        """Hold some of the next purchases; they alone may be late."""
        count = random.Random(fault.dice).choice((1, 5, 50, 150))
        with _until_cut_off(), self._connected() as connection, connection.transaction():
            held = [row[0] for row in connection.execute(LOCK_SOME, [count])]
            self._ledger.excuse(held, until=time.time() + fault.seconds + 1)
            time.sleep(fault.seconds)

    def old_snapshot(self, fault: Fault) -> None:
        """Keep a snapshot, so that no dead row can be cleaned up."""
        with _until_cut_off(), self._connected() as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                connection.execute("SELECT count(*) FROM promotion.outbox")
                time.sleep(fault.seconds)

    def exhaust_connections(self, fault: Fault) -> None:
        """Take all connections that are left."""
        with contextlib.ExitStack() as taken:
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    taken.enter_context(psycopg.connect(self._url, connect_timeout=5, application_name="chaos-hog"))
            time.sleep(fault.seconds)

    def poison(self, fault: Fault) -> None:
        """Sell purchases that cannot expire, and make them well after a while."""
        dice = random.Random(fault.dice)
        how = dice.choice(list(poison.HEALING))
        sales, make = poison.poisonous_sales(dice, how)
        ids = [sale.id for sale in sales]
        self._writer.sell(sales, make)
        time.sleep(fault.seconds)

        def heal() -> None:
            with self._connected() as connection:
                poison.heal(connection, dice, how, ids)

        patiently(heal, (psycopg.Error,), seconds=POSSIBLE_WAIT)
        self._ledger.poison[how] += len(sales)
        self._ledger.excuse(ids, until=time.time())  # or for longer, if another fault holds them

    def _connected(self) -> psycopg.Connection:
        """Return a connection, after a wait if another fault has taken the database away."""
        made: list[psycopg.Connection] = []
        patiently(
            lambda: made.append(
                psycopg.connect(self._url, connect_timeout=5, application_name="chaos", autocommit=True)
            ),
            (psycopg.OperationalError,),
            seconds=RECONNECT_SECONDS,
        )
        return made[0]


@contextmanager
def _until_cut_off() -> Iterator[None]:
    """Let the fault end early when another one takes its connection."""
    with contextlib.suppress(psycopg.OperationalError):
        yield
