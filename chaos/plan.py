"""What is broken when: a schedule that depends on the seed and the duration alone."""

import random
from collections.abc import Collection
from dataclasses import dataclass

WORKERS = ("worker-1", "worker-2", "worker-3")
RELAYS = ("relay-1", "relay-2", "relay-3")
CONSUMERS = ("catalog", "news")
CLOCKED = "worker-3"  # has a wall clock of its own
PROGRAMS = (*WORKERS, *RELAYS, "web")
GAP = (1.0, 3.0)  # seconds between two faults; they may overlap
DECK = 20  # cards at least: of few kinds, several of each
CALM = 15.0  # seconds without a new fault when the deck is used up: nothing excuses lateness then
# From this second on the eldest of each kind are not killed any more, so that it shows whether their memory stays flat.
SPARED_FROM = 200.0
ELDEST = ("worker-1", "relay-1", "web")
QUIET_END = 5.0  # seconds without a new fault at the end

# Each kind of fault: what it may hit, and for how many seconds.
KINDS: dict[str, tuple[tuple[str, ...], tuple[float, float]]] = {
    "kill": (PROGRAMS, (0, 0)),
    "terminate": (PROGRAMS, (0, 0)),
    "suspend": (PROGRAMS, (1, 6)),
    "kill-consumer": (CONSUMERS, (0, 0)),
    "kill-in-commit": (("younger-workers", "web"), (1, 2)),
    "clock-jump": ((CLOCKED,), (3, 12)),
    "postgres-fast": (("postgres",), (0, 2)),
    "postgres-immediate": (("postgres",), (0, 2)),
    "postgres-kill": (("postgres",), (0, 2)),
    "postgres-suspend": (("postgres",), (1, 5)),
    "broker-restart": (("broker",), (0, 2)),
    "broker-kill": (("broker",), (0, 2)),
    "broker-suspend": (("broker",), (1, 12)),
    "cut": (("postgres", "broker"), (0, 0)),
    "delay": (("postgres", "broker"), (3, 8)),
    "freeze": (("postgres", "broker"), (1, 6)),
    "forget": (("postgres", "broker"), (0, 0)),
    "terminate-backends": (("postgres",), (0, 0)),
    "exhaust-connections": (("postgres",), (2, 5)),
    "lock-purchases": (("purchases",), (2, 12)),
    "lock-outbox": (("outbox",), (1, 6)),
    "old-snapshot": (("postgres",), (5, 20)),
    "poison": (("purchases",), (3, 12)),
    "fill-disk": (("postgres",), (2, 5)),
    "missing-topic": (("topic",), (4, 12)),
}
LETHAL = frozenset({"kill", "terminate", "kill-in-commit"})
NEED_LASTING_BROKER = frozenset({"broker-restart", "broker-kill"})


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: when (seconds from the start), what, to whom, for how many seconds; `dice` seeds its own choices."""

    at: float
    kind: str
    target: str
    seconds: float
    dice: int

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} {self.target}{lasting}"


def schedule(*, seed: int, duration: float, kinds: Collection[str]) -> list[Fault]:
    """Deal the kinds like a deck of cards, shuffled anew each time it is used up: none is forgotten by chance."""
    dice = random.Random(seed)
    faults: list[Fault] = []
    deck: list[str] = []
    at = dice.uniform(*GAP)
    while at < duration - QUIET_END:
        if not deck:
            deck = sorted(kinds) * max(1, DECK // len(kinds))
            dice.shuffle(deck)
        kind = deck.pop()
        targets, (shortest, longest) = KINDS[kind]
        if at > SPARED_FROM and kind in LETHAL:
            targets = tuple(target for target in targets if target not in ELDEST)
        seconds = round(dice.uniform(shortest, longest), 1)
        faults.append(Fault(round(at, 2), kind, dice.choice(targets), seconds, dice.getrandbits(32)))
        at += dice.uniform(*GAP) + (0.0 if deck else CALM)
    return faults
