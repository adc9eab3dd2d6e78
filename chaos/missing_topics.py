"""Messages for a topic that does not exist yet: they are parked; an operator requeues them when it does."""

import contextlib
import random
import time
import uuid

import psycopg

from chaos.actor import patiently
from chaos.ledger import Ledger
from chaos.one_offs import OneOffs
from chaos.plan import Fault
from chaos.telling import record
from devstack.broker import create_topic
from devstack.errors import DevstackError

PATIENCE = 120.0  # seconds for each step, other faults or not
PARKED_SECONDS = 30.0
PAUSE = 1.0
_LEFT = """
SELECT event_id, key, parked_at IS NOT NULL FROM promotion.outbox WHERE topic = %s AND published_at IS NULL
"""


class MissingTopics:
    """Works past the database's proxy, but for the operator's command."""

    def __init__(self, url: str, bootstrap: str, commands: OneOffs, ledger: Ledger) -> None:
        self._url = url
        self._bootstrap = bootstrap
        self._commands = commands
        self._ledger = ledger

    def tell_before_it_exists(self, fault: Fault) -> None:
        """Record some messages, create their topic after `fault.seconds`, and see to it that they go out."""
        dice = random.Random(fault.dice)
        topic = f"chaos.notices.{fault.dice}"
        events = [event for _ in range(dice.randint(1, 4)) for event in self._record(topic, dice.randint(1, 3))]
        time.sleep(fault.seconds)
        self._await_parked(topic)
        patiently(lambda: create_topic(self._bootstrap, topic), (DevstackError,), seconds=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        self._ledger.requeued.update(dict.fromkeys(events, time.time()))
        while left := self._left(topic):
            requeueing = any(parked for _, _, parked in left)
            with self._ledger.lock:
                self._ledger.requeued.update((event_id, time.time()) for event_id, _, _ in left)
                if requeueing:  # the others as well: they may be parked until the command comes to them
                    self._ledger.unordered.update(key for _, key, _ in left)
            if requeueing:
                self._commands.run("requeue_outbox", "--topic", topic)
            if time.monotonic() > deadline:
                return  # the checks will say so
            time.sleep(PAUSE)

    def _await_parked(self, topic: str) -> None:
        """Wait until a message is parked, but not for ever: other faults may keep the relays from trying."""
        deadline = time.monotonic() + PARKED_SECONDS
        while (left := self._left(topic)) and time.monotonic() < deadline:
            if any(parked for _, _, parked in left):
                return
            time.sleep(PAUSE)

    def _record(self, topic: str, count: int) -> list[uuid.UUID]:
        """Record `count` messages of one key; return their event ids."""
        key, events = uuid.uuid4(), [uuid.uuid4() for _ in range(count)]

        def attempt() -> None:
            with psycopg.connect(self._url, connect_timeout=5, application_name="chaos") as connection:
                for number, event in enumerate(events):
                    record(connection, event, "Notice", key, topic, f'{{"notice": {number}}}')

        with contextlib.suppress(psycopg.errors.UniqueViolation):  # its commit had gone through, its answer was lost
            patiently(attempt, (psycopg.OperationalError,), seconds=PATIENCE)
        return events

    def _left(self, topic: str) -> list[tuple[uuid.UUID, str, bool]]:
        left: list[tuple[uuid.UUID, str, bool]] = []

        def attempt() -> None:
            with psycopg.connect(self._url, connect_timeout=5, application_name="chaos") as connection:
                left[:] = connection.execute(_LEFT, [topic]).fetchall()

        patiently(attempt, (psycopg.Error,), seconds=PATIENCE)
        return left
