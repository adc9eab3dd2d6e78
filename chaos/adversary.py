"""Carries the schedule out: each fault in a thread of its own, one at a time on the same thing."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable

import psycopg

from chaos.faults import Faults, Stage
from chaos.ledger import Ledger
from chaos.plan import Fault


class Adversary:
    """`run` starts each fault at its time; `finish` waits for the last to be over."""

    def __init__(self, stage: Stage, ledger: Ledger, say: Callable[[str], None]) -> None:
        self._faults = Faults(stage, ledger)
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
        with self._busy[_resource(fault)]:
            began = time.time()
            try:
                self._faults.commit(fault)
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


def _resource(fault: Fault) -> str:
    """Return what the fault needs for itself: of those with the same, one is carried out at a time."""
    if fault.kind in {"lock-outbox", "kill-in-commit"}:
        return "outbox"
    if fault.kind in {"lock-purchases", "poison", "old-snapshot"}:
        return f"{fault}"
    if fault.kind in {"cut", "delay", "freeze", "forget"}:
        return f"network {fault.target}"
    return fault.target
