"""What the campaign itself has done: the witness against which the system is judged."""

import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A time (wall clock, seconds) in which something cannot work in time, and what: `expiry`, `delivery`, or both."""

    start: float
    end: float
    scope: frozenset[str]
    reason: str


BOTH = frozenset({"expiry", "delivery"})
DELIVERY = frozenset({"delivery"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a manager asked for, and what the web process said; status 0: no answer came."""

    purchase: uuid.UUID
    asked: str  # "cancel", "cancel-version", "cancel-stale-version", "other-company", "no-token", "operator"
    expected_version: int | None
    status: int
    version: int | None


@dataclass(slots=True)
class Ledger:
    """Shared by all threads."""

    created: set[uuid.UUID] = field(default_factory=set)
    changes: Counter[uuid.UUID] = field(default_factory=Counter)  # by the writer, each with version += 1
    ready_since: dict[uuid.UUID, float] = field(default_factory=dict)  # healed, or no longer held, at this time
    requeued: dict[uuid.UUID, float] = field(default_factory=dict)  # event ids: when it could be published
    unordered: set[str] = field(default_factory=set)  # keys of which an operator has requeued messages
    poison: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    injected: Counter[str] = field(default_factory=Counter)
    impossible: Counter[str] = field(default_factory=Counter)
    timeline: list[tuple[float, float, str]] = field(default_factory=list)  # from, to, fault
    lock: threading.Lock = field(default_factory=threading.Lock)

    def excuse(self, purchases: list[uuid.UUID], *, until: float) -> None:
        """Remember that these could not be expired before `until`."""
        with self.lock:
            for purchase in purchases:
                self.ready_since[purchase] = max(until, self.ready_since.get(purchase, 0.0))

    def disturb(self, start: float, end: float, scope: frozenset[str], reason: str) -> None:
        """Remember a disturbance of everything."""
        with self.lock:
            self.disturbances.append(Disturbance(start, end, scope, reason))
