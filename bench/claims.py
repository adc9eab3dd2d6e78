"""The relay's claim beside millions of published messages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from bench import world
from bench.figures import Figure, milliseconds
from bench.measure import interleaved, ratio
from bench.messages import fill, settle
from bench.relay import BATCH

PENDING = 2_000


def measure(_url: str, *, published: int, rounds: int) -> Iterator[Figure]:
    """Yield what a claim costs beside so many published messages, vacuumed."""
    for name, count in (("alone", 0), ("beside", published)):
        world.create(name)
        if count:
            fill(count, published="now() - random() * interval '7 days'")
        fill(PENDING)
        settle()
    taken = interleaved(dict.fromkeys(("alone", "beside"), claim), rounds=rounds, prepare=world.warming(claim))
    world.drop("beside")
    yield Figure(
        f"claim beside {published:,} published messages",
        ratio(taken["beside"], taken["alone"]),
        1.5,
        1.1,
        "beside none",
        milliseconds(**taken),
    )


def claim() -> None:
    """Claim a batch, as a relay does, and give it back."""
    from django.db import transaction

    from outbox import claiming

    with transaction.atomic():
        assert len(claiming.claim(BATCH, at=datetime.now(UTC))) > 0
        transaction.set_rollback(True)
