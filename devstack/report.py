"""What the demonstration shows, and the judgement on what it did: by plain SQL and by what was consumed."""

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import psycopg

from devstack.boosts import Seen
from devstack.dataset import Purchase

_ROWS = """
SELECT p.id, p.status, p.version, extract(epoch FROM p.updated_at - p.ends_at)::float8,
       (SELECT count(*) FROM promotion.outbox o WHERE o.aggregate_id = p.id),
       (SELECT f.reason FROM promotion.expiration_failures f WHERE f.purchase_id = p.id)
FROM promotion.promotion_purchases p
"""
_CLEAR = "\033[K"  # to the end of the line
_LABELS = {"CatalogItem": "catalog cards", "NewsPost": "news posts"}


@dataclass(frozen=True)
class State:
    """The numbers that are shown as they change."""

    expired: int
    due: int
    waiting: int
    published: int
    consumed: int


@dataclass
class Outcome:
    """What came out; `broken` lists every promise that was not kept."""

    due: int = 0
    expired: int = 0
    skipped: int = 0
    published: int = 0
    cycles: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    lateness: list[float] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not self.broken


def describe(purchases: list[Purchase]) -> str:
    """Say in one line what the data set is made of."""
    groups = Counter(one.group for one in purchases)
    companies = len({one.tenant_id for one in purchases})
    return (
        f"{len(purchases):,} purchases of {companies} companies: "
        f"{groups['due']:,} due, {groups['ending']} about to end, "
        f"{groups['poison']} poison, {groups['running'] + groups['pending']} not due, "
        f"{groups['cancelled'] + groups['expired']} ended before"
    )


def judge(database: str, purchases: list[Purchase], seen: Seen, cycles: list[dict[str, Any]]) -> Outcome:
    """Compare every purchase with what was promised for its group."""
    outcome = Outcome(seen=seen, cycles=len(cycles), skipped=sum(cycle["skipped_locked"] for cycle in cycles))
    with psycopg.connect(database) as connection:
        rows = {row[0]: row[1:] for row in connection.execute(_ROWS)}
        counted = connection.execute("SELECT count(*) FROM promotion.outbox WHERE published_at IS NOT NULL").fetchone()
        outcome.published = counted[0] if counted else 0
    for one in purchases:
        _judge_one(one, rows[one.id], outcome)
    if twice := sum(times > 1 for times in seen.events.values()):
        outcome.broken.append(f"{twice} events arrived more than once")
    return outcome


def _judge_one(one: Purchase, row: tuple[Any, ...], outcome: Outcome) -> None:
    status, version, lateness, events, reason = row
    arrived = outcome.seen.purchases[str(one.id)]
    if one.group in {"due", "ending"}:
        outcome.due += 1
        expected: tuple[Any, ...] = ("Expired", one.version + 1, 1, 1)
        outcome.expired += status == "Expired"
        if one.group == "ending":
            outcome.lateness.append(lateness)
            if lateness < 0:
                outcome.broken.append(f"purchase {one.id} ended {-lateness:.3f} s early")
    else:
        expected = (one.status, one.version, 0, 0)
    if one.group == "poison":
        outcome.due += 1
        outcome.failed[reason or "not noticed"] += 1
    if (status, version, events, arrived) != expected:
        outcome.broken.append(
            f"purchase {one.id} ({one.group}): status, version, events recorded, events consumed are "
            f"{(status, version, events, arrived)}, not {expected}"
        )


class Reporter:
    """Prints to stdout; on a terminal the progress line is drawn over."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._live = sys.stdout.isatty()
        self._last = ""

    def step(self, text: str) -> None:
        """Say what is being done."""
        print(f"  ... {text}", end="\r" if self._live else "\n", flush=True)

    def done(self, text: str) -> None:
        """Say what has been done."""
        print(f"{_CLEAR if self._live else ''}{time.monotonic() - self._began:5.1f} s  {text}", flush=True)

    def progress(self, state: State, *, goal: int) -> None:
        """Show how far it is; without a terminal only when something has changed."""
        filled = 24 * state.expired // goal
        line = (
            f"[{'█' * filled}{'░' * (24 - filled)}]  due {state.due:>5,}   expired {state.expired:>5,}   "
            f"outbox {state.waiting:>4,}   published {state.published:>5,}   consumed {state.consumed:>5,}"
        )
        if self._live:
            print(f"{_CLEAR}{time.monotonic() - self._began:5.1f} s  {line}", end="\r", flush=True)
        elif line != self._last:
            self.done(line)
        self._last = line

    def summary(self, outcome: Outcome, *, seconds: float, interval: float) -> None:
        """Print what a person wants to know within five seconds."""
        if self._live:
            print()
        late, delays, seen = sorted(outcome.lateness), sorted(outcome.seen.delays), outcome.seen
        boosts = ", ".join(f"{seen.targets[kind]:,} {label}" for kind, label in _LABELS.items())
        rows = [
            ("due", f"{outcome.due:,} purchases in {outcome.cycles} cycles of two workers"),
            ("expired", f"{outcome.expired:,}, each once"),
            ("skipped", f"{outcome.skipped:,} times a row was locked by the other worker, and left to it"),
            ("failed", f"{outcome.failed.total()}, still due for the operators to see:"),
            *(("", f"{count} x {reason.partition(': ')[2] or reason}") for reason, count in outcome.failed.items()),
            ("events", f"{outcome.published:,} published, {seen.messages:,} consumed, {len(seen.events):,} different"),
            ("lateness", f"median {median(late):.2f} s, at most {late[-1]:.2f} s (a tick every {interval:g} s)"),
            (
                "delivery",
                f"median {median(delays):.2f} s from the cycle's moment to the topic, at most {delays[-1]:.2f} s",
            ),
            ("boosts off", boosts),
        ]
        verdict = "everything as promised" if outcome.good else f"{len(outcome.broken)} PROMISES BROKEN"
        print(f"\nPinPromo's demonstration: {verdict} ({seconds:.0f} s)\n")
        for name, text in rows:
            print(f"  {name:<11} {text}")
        for text in outcome.broken[:10]:
            print(f"  BROKEN      {text}")
        print("\nGo on: `make up` keeps such a stack running, with the admin on a local port; `make down` ends it.")
