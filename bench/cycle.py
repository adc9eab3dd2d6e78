"""The expiry cycle: against plain SQL and plain Django, as the table grows, and with dead rows in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import psycopg

from bench import floors, world
from bench.figures import Figure, milliseconds
from bench.measure import Sample, interleaved, ratio

if TYPE_CHECKING:
    from promotion.outlook import LowMark

BATCH = 200
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def measure(url: str, *, purchases: int, dead: int, held: int, rounds: int) -> Iterator[Figure]:
    """Yield the figures of the cycle."""
    world.use("pinpromo")
    world.fill(due=(3 * rounds + 20) * BATCH, running=purchases // 10, expired=purchases * 9 // 10)
    yield from _against_floors(url, purchases, rounds)
    yield _empty(purchases)
    yield from _as_it_grows(url, purchases, dead, held, rounds)


def expire(as_of: datetime | None = None, mark: LowMark | None = None) -> int:
    """Run the cycle under measurement, as the worker does; with a `mark`, as in the midst of a drain."""
    from promotion.expiration import run_cycle

    as_of = as_of or datetime.now(UTC)
    return run_cycle(as_of=as_of, batch_size=BATCH, budget=30.0, retry_stuck=mark is None, mark=mark).expired


def _against_floors(url: str, purchases: int, rounds: int) -> Iterator[Figure]:
    with psycopg.connect(url, autocommit=True) as link:
        taken = interleaved(
            {
                "floor": lambda: floors.expire_in_sql(link, datetime.now(UTC), BATCH),
                "cycle": expire,
                "naive": lambda: floors.expire_naively(datetime.now(UTC), BATCH),
            },
            rounds=rounds,
        )
    yield Figure(
        f"cycle of {BATCH} at {purchases:,} purchases",
        ratio(taken["cycle"], taken["floor"]),
        2.0,
        1.4,
        "one raw SQL statement",
        milliseconds(cycle=taken["cycle"], raw=taken["floor"]),
    )
    yield Figure(
        "the same, how many times faster",
        ratio(taken["naive"], taken["cycle"]),
        10,
        16,
        "per-row save() and create()",
        milliseconds(naive=taken["naive"]),
        at_least=True,
    )


def _empty(purchases: int) -> Figure:
    from django.db import connection, transaction

    def select_one() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()

    taken = interleaved({"floor": select_one, "empty": lambda: expire(LONG_AGO)}, rounds=300)
    return Figure(
        f"empty cycle at {purchases:,} purchases",
        ratio(taken["empty"], taken["floor"]),
        4,
        2,
        "`SELECT 1` in a transaction",
        milliseconds(empty=taken["empty"], select_1=taken["floor"]),
    )


def _as_it_grows(url: str, purchases: int, dead: int, held: int, rounds: int) -> Iterator[Figure]:
    due = (rounds + 5) * BATCH
    for name in ("fresh", "grown", "churned", "held"):
        world.create(name)
    world.use("churned")
    world.leave_dead_entries(dead)
    world.fill(due=due, settle=False)
    with psycopg.connect(world.url_of(url, "held")) as old:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT count(*) FROM promotion.promotion_purchases")
        world.use("held")
        world.leave_dead_entries(held)
        world.fill(due=due, settle=False)
        world.use("grown")
        world.fill(due=due, running=purchases // 10, expired=purchases * 9 // 10)
        world.use("fresh")
        world.fill(due=due, running=1_000, expired=9_000)
        cycles = interleaved(_draining(expire, "fresh", "grown", "churned"), rounds=rounds, prepare=world.use)
        claims = interleaved(_draining(_claim, "fresh", "held"), rounds=rounds, prepare=world.use)
        looks = interleaved(dict.fromkeys(("churned", "held"), _look), rounds=rounds, prepare=world.use)
    for name, label, must, aim in (
        ("grown", f"cycle at {purchases:,} purchases", 1.5, 1.2),
        ("churned", f"cycle after {dead:,} expired without vacuum", 1.5, 1.2),
    ):
        yield Figure(
            label,
            ratio(cycles[name], cycles["fresh"]),
            must,
            aim,
            "the same at 10,000, vacuumed",
            milliseconds(**{name: cycles[name], "fresh": cycles["fresh"]}) + _plus(looks.get(name)),
        )
    yield Figure(
        f"claim while an old snapshot holds {held:,} dead entries",
        ratio(claims["held"], claims["fresh"]),
        3,
        1.5,
        "fresh",
        milliseconds(held=claims["held"], fresh=claims["fresh"]) + _plus(looks["held"]),
    )


def _draining(run: Callable[..., object], *databases: str) -> dict[str, Callable[[], object]]:
    """Return the sides that run it as a drain does: one after the other, with a low mark for each database."""
    from promotion.outlook import LowMark

    return {name: partial(run, mark=LowMark()) for name in databases}


def _plus(looks: Sample | None) -> str:
    """Say what the first cycle of each tick, and then one a second, takes besides."""
    return (
        f"; a look over everything, at each tick and once a second: {looks.median * 1e3:.1f} ms more" if looks else ""
    )


def _look() -> None:
    """Look over everything."""
    from promotion.outlook import look_ahead

    look_ahead(datetime.now(UTC), retries=0)


def _claim(mark: LowMark) -> None:
    """Look ahead and lock a batch, as a cycle does, and give it back."""
    from django.db import transaction

    from promotion.claiming import Candidates, Place

    now = datetime.now(UTC)
    oldest = mark.look_ahead(now, retries=0).oldest_due
    assert oldest is not None
    with transaction.atomic():
        assert len(Candidates(at=now, after=Place.before(oldest)).lock(BATCH).purchases) == BATCH
        transaction.set_rollback(True)
