"""The expiry cycle in a table far larger than it was designed for."""

from __future__ import annotations

from collections.abc import Iterator

from bench import world
from bench.cycle import BATCH, expire
from bench.figures import Figure, milliseconds
from bench.measure import interleaved, ratio

SIDES = ("small", "large")


def measure(_url: str, *, purchases: int, rounds: int) -> Iterator[Figure]:
    """Yield what a cycle costs among so many purchases, vacuumed."""
    for name, count in zip(SIDES, (10_000, purchases), strict=True):
        world.create(name)
        world.fill(due=(rounds + 5) * BATCH, running=count // 10, expired=count * 9 // 10)
    taken = interleaved(dict.fromkeys(SIDES, expire), rounds=rounds, prepare=world.use)
    world.drop("large")
    yield Figure(
        f"cycle at {purchases:,} purchases",
        ratio(taken["large"], taken["small"]),
        1.7,
        1.3,
        "the same at 10,000",
        milliseconds(**taken),
    )
