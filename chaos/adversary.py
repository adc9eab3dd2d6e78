"""Carries the schedule out: each fault in a thread of its own, one at a time on the same thing."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from chaos.database_faults import DatabaseFaults
from chaos.disk import SmallDisk
from chaos.ledger import BOTH, DELIVERY, Ledger
from chaos.parts import Part
from chaos.plan import Fault
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


class Adversary:
    """`run` starts each fault at its time; `finish` waits for the last to be over."""

    def __init__(self, stage: Stage, ledger: Ledger, say: Callable[[str], None]) -> None:
        self._stage = stage
        self._ledger = ledger
        self._say = say
        self._busy: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._threads: list[threading.Thread] = []
        self.errors: list[str] = []

    def run(self, faults: list[Fault], *, began: float) -> None:
        """Carry out `faults`, their times counted from the monotonic instant `began`."""
        for fault in faults:
            time.sleep(max(0.0, began + fault.at - time.monotonic()))
            thread = threading.Thread(target=self._commit, args=(fault,), name=str(fault), daemon=True)
            self._threads.append(thread)
            thread.start()

    def finish(self) -> None:
        """Wait until every fault is over and healed."""
        for thread in self._threads:
            thread.join()

    def _commit(self, fault: Fault) -> None:
        with self._busy[self._resource(fault)]:
            began = time.time()
            try:
                getattr(self, "_" + fault.kind.replace("-", "_"))(fault)
            except (psycopg.Error, OSError) as error:  # another fault was in the way
                self._ledger.impossible[fault.kind] += 1
                self._say(f"{fault}: not possible now ({str(error).splitlines()[0][:80]})")
                return
            except Exception as error:  # noqa: BLE001 - the campaign's own fault: reported as such
                self.errors.append(f"{fault}: {error!r}")
                return
            self._ledger.injected[fault.kind] += 1
            self._ledger.timeline.append((began, time.time(), str(fault)))
            self._say(str(fault))

    def _resource(self, fault: Fault) -> str:
        """Return what the fault needs for itself: of those with the same, one is carried out at a time."""
        if fault.kind in {"lock-outbox", "kill-in-commit"}:
            return "outbox"
        if fault.kind in {"lock-purchases", "poison", "old-snapshot"}:
            return f"{fault}"
        if fault.kind in {"cut", "delay", "freeze", "forget"}:
            return f"network {fault.target}"
        return fault.target

    def _part(self, fault: Fault) -> Part:
        return self._stage.parts[fault.target]

    # --- Processes ---

    def _kill(self, fault: Fault) -> None:
        self._part(fault).kill()

    _kill_consumer = _kill

    def _terminate(self, fault: Fault) -> None:
        self._part(fault).terminate()

    def _suspend(self, fault: Fault) -> None:
        """A suspended program may hold rows or lanes: the others cannot take those over while it sleeps."""
        began = time.time()
        self._part(fault).suspend(fault.seconds)
        self._ledger.disturb(began, time.time(), BOTH if "worker" in fault.target else DELIVERY, str(fault))

    def _kill_in_commit(self, fault: Fault) -> None:
        """Hold the outbox so that whoever writes an event waits before its commit, and kill it there."""
        began = time.time()
        names = [name for name in self._stage.parts if name.startswith(fault.target.rstrip("s"))]
        with self._stage.database.outbox_locked():
            time.sleep(fault.seconds)
            for name in names:
                self._stage.parts[name].kill()
        self._ledger.disturb(began, time.time() + SETTLE_SECONDS, BOTH, str(fault))

    # --- Servers ---

    def _postgres_fast(self, fault: Fault) -> None:
        self._down(fault, self._stage.postgres, lambda: self._stage.postgres.halt("fast"))

    def _postgres_immediate(self, fault: Fault) -> None:
        self._down(fault, self._stage.postgres, lambda: self._stage.postgres.halt("immediate"))

    def _postgres_kill(self, fault: Fault) -> None:
        self._down(fault, self._stage.postgres, self._stage.postgres.kill)

    def _broker_restart(self, fault: Fault) -> None:
        self._down(fault, self._stage.broker, self._stage.broker.halt)

    def _broker_kill(self, fault: Fault) -> None:
        self._down(fault, self._stage.broker, self._stage.broker.kill)

    def _down(self, fault: Fault, server: EmbeddedServer, end: Callable[[], None]) -> None:
        began = time.time()
        end()
        time.sleep(fault.seconds)
        server.start()
        self._ledger.disturb(began, time.time() + SETTLE_SECONDS, self._scope(fault), str(fault))

    def _postgres_suspend(self, fault: Fault) -> None:
        self._silent(fault, self._stage.postgres.suspend, self._stage.postgres.resume)

    def _broker_suspend(self, fault: Fault) -> None:
        self._silent(fault, self._stage.broker.suspend, self._stage.broker.resume)

    # --- Network ---

    def _network(self, fault: Fault) -> Proxy:
        return self._stage.to_postgres if fault.target == "postgres" else self._stage.to_broker

    def _scope(self, fault: Fault) -> frozenset[str]:
        return BOTH if fault.target == "postgres" else DELIVERY

    def _cut(self, fault: Fault) -> None:
        began = time.time()
        self._network(fault).cut()
        self._ledger.disturb(began, began + SETTLE_SECONDS, self._scope(fault), str(fault))

    def _delay(self, fault: Fault) -> None:
        latency = random.Random(fault.dice).uniform(0.01, 0.15)
        self._silent(fault, lambda: self._network(fault).delay(latency), lambda: self._network(fault).delay(0))

    def _freeze(self, fault: Fault) -> None:
        self._silent(fault, self._network(fault).freeze, self._network(fault).thaw)

    def _silent(self, fault: Fault, begin: Callable[[], None], end: Callable[[], None]) -> None:
        began = time.time()
        begin()
        time.sleep(fault.seconds)
        end()
        self._ledger.disturb(began, time.time() + SETTLE_SECONDS, self._scope(fault), str(fault))

    def _forget(self, fault: Fault) -> None:
        began = time.time()
        self._network(fault).forget()
        self._ledger.disturb(began, began + FORGOTTEN_SECONDS, self._scope(fault), str(fault))

    # --- Inside the database ---

    def _terminate_backends(self, fault: Fault) -> None:
        began = time.time()
        self._stage.database.terminate_backends()
        self._ledger.disturb(began, began + SETTLE_SECONDS, BOTH, str(fault))

    def _exhaust_connections(self, fault: Fault) -> None:
        self._stage.database.exhaust_connections(fault)

    def _lock_purchases(self, fault: Fault) -> None:
        self._stage.database.lock_purchases(fault)

    def _lock_outbox(self, fault: Fault) -> None:
        began = time.time()
        with self._stage.database.outbox_locked():
            time.sleep(fault.seconds)
        self._ledger.disturb(began, time.time() + SETTLE_SECONDS, BOTH, str(fault))

    def _old_snapshot(self, fault: Fault) -> None:
        self._stage.database.old_snapshot(fault)

    def _poison(self, fault: Fault) -> None:
        self._stage.database.poison(fault)

    def _fill_disk(self, fault: Fault) -> None:
        began = time.time()
        with self._stage.disk.full():
            time.sleep(fault.seconds)
        self._ledger.disturb(began, time.time() + SETTLE_SECONDS, BOTH, str(fault))
