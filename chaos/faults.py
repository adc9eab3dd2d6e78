"""What each kind of fault does; the names are those of `plan.KINDS`."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chaos.clock import JUMPS, Clock
from chaos.database_faults import DatabaseFaults
from chaos.disk import SmallDisk
from chaos.ledger import BOTH, DELIVERY, Ledger
from chaos.missing_topics import MissingTopics
from chaos.parts import Part
from chaos.plan import WORKERS, Fault
from chaos.proxy import Proxy
from devstack.postgres import EmbeddedPostgres
from devstack.server import EmbeddedServer

FORGOTTEN_SECONDS = 14.0  # what the programs may need to notice a connection on which nothing comes any more
SETTLE_SECONDS = 2.0  # for a server that is back: reconnecting


@dataclass(slots=True, kw_only=True)
class Stage:
    """All that can be broken."""

    parts: dict[str, Part]
    postgres: EmbeddedPostgres
    broker: EmbeddedServer
    to_postgres: Proxy
    to_broker: Proxy
    database: DatabaseFaults
    disk: SmallDisk
    clock: Clock
    missing_topics: MissingTopics


class Faults:
    """Each returns when it is over and healed, and has told the ledger what it disturbed."""

    def __init__(self, stage: Stage, ledger: Ledger) -> None:
        self._stage = stage
        self._ledger = ledger

    def commit(self, fault: Fault) -> None:
        """Do it. Raises psycopg.Error or OSError when another fault is in the way."""
        act: Callable[[Fault], None] = getattr(self, fault.kind.replace("-", "_"))
        act(fault)

    @contextmanager
    def _disturbing(self, fault: Fault, scope: frozenset[str], *, settling: float = SETTLE_SECONDS) -> Iterator[None]:
        """Note the block's time, and then some for things to settle, also if another fault ends it early."""
        began = time.time()
        try:
            yield
        finally:
            self._ledger.disturb(began, time.time() + settling, scope, str(fault))

    def _part(self, fault: Fault) -> Part:
        return self._stage.parts[fault.target]

    # --- Processes ---

    def kill(self, fault: Fault) -> None:
        self._part(fault).kill()

    kill_consumer = kill

    def terminate(self, fault: Fault) -> None:
        self._part(fault).terminate()

    def suspend(self, fault: Fault) -> None:
        """A suspended program may hold rows or lanes: the others cannot take those over while it sleeps."""
        with self._disturbing(fault, BOTH if "worker" in fault.target else DELIVERY, settling=0.0):
            self._part(fault).suspend(fault.seconds)

    def kill_in_commit(self, fault: Fault) -> None:
        """Hold the outbox so that whoever writes an event waits before its commit, and kill it there."""
        names = WORKERS[1:] if fault.target == "younger-workers" else [fault.target]
        with self._disturbing(fault, BOTH), self._stage.database.outbox_locked():
            time.sleep(fault.seconds)
            for name in names:
                self._stage.parts[name].kill()

    def clock_jump(self, fault: Fault) -> None:
        """Nothing excuses lateness: the other workers' clocks are right."""
        self._stage.clock.set(random.Random(fault.dice).choice(JUMPS))
        time.sleep(fault.seconds)
        self._stage.clock.set(0)

    # --- Servers ---

    def postgres_fast(self, fault: Fault) -> None:
        self._down(fault, self._stage.postgres, lambda: self._stage.postgres.halt("fast"))

    def postgres_immediate(self, fault: Fault) -> None:
        self._down(fault, self._stage.postgres, lambda: self._stage.postgres.halt("immediate"))

    def postgres_kill(self, fault: Fault) -> None:
        self._down(fault, self._stage.postgres, self._stage.postgres.kill)

    def broker_restart(self, fault: Fault) -> None:
        self._down(fault, self._stage.broker, self._stage.broker.halt)

    def broker_kill(self, fault: Fault) -> None:
        self._down(fault, self._stage.broker, self._stage.broker.kill)

    def _down(self, fault: Fault, server: EmbeddedServer, end: Callable[[], None]) -> None:
        with self._disturbing(fault, self._scope(fault)):
            end()
            time.sleep(fault.seconds)
            server.start()

    def postgres_suspend(self, fault: Fault) -> None:
        self._silent(fault, self._stage.postgres.suspend, self._stage.postgres.resume)

    def broker_suspend(self, fault: Fault) -> None:
        self._silent(fault, self._stage.broker.suspend, self._stage.broker.resume)

    # --- Network ---

    def _network(self, fault: Fault) -> Proxy:
        return self._stage.to_postgres if fault.target == "postgres" else self._stage.to_broker

    def _scope(self, fault: Fault) -> frozenset[str]:
        return BOTH if fault.target == "postgres" else DELIVERY

    def cut(self, fault: Fault) -> None:
        with self._disturbing(fault, self._scope(fault)):
            self._network(fault).cut()

    def delay(self, fault: Fault) -> None:
        latency = random.Random(fault.dice).uniform(0.01, 0.15)
        self._silent(fault, lambda: self._network(fault).delay(latency), lambda: self._network(fault).delay(0))

    def freeze(self, fault: Fault) -> None:
        self._silent(fault, self._network(fault).freeze, self._network(fault).thaw)

    def _silent(self, fault: Fault, begin: Callable[[], None], end: Callable[[], None]) -> None:
        with self._disturbing(fault, self._scope(fault)):
            begin()
            time.sleep(fault.seconds)
            end()

    def forget(self, fault: Fault) -> None:
        with self._disturbing(fault, self._scope(fault), settling=FORGOTTEN_SECONDS):
            self._network(fault).forget()

    # --- Inside the database ---

    def terminate_backends(self, fault: Fault) -> None:
        with self._disturbing(fault, BOTH):
            self._stage.database.terminate_backends()

    def exhaust_connections(self, fault: Fault) -> None:
        with self._disturbing(fault, BOTH):
            self._stage.database.exhaust_connections(fault)

    def lock_purchases(self, fault: Fault) -> None:
        self._stage.database.lock_purchases(fault)

    def lock_outbox(self, fault: Fault) -> None:
        with self._disturbing(fault, BOTH), self._stage.database.outbox_locked():
            time.sleep(fault.seconds)

    def old_snapshot(self, fault: Fault) -> None:
        self._stage.database.old_snapshot(fault)

    def poison(self, fault: Fault) -> None:
        self._stage.database.poison(fault)

    def fill_disk(self, fault: Fault) -> None:
        with self._disturbing(fault, BOTH), self._stage.disk.full():
            time.sleep(fault.seconds)

    # --- Topics ---

    def missing_topic(self, fault: Fault) -> None:
        self._stage.missing_topics.tell_before_it_exists(fault)
