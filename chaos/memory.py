"""Does the memory of the programs stay flat? Judged by regression over both halves of every life that was long enough.

A leak goes on, so both halves rise. A step, at the first large batch for instance, lifts only one of them.
"""

from collections.abc import Collection, Sequence
from statistics import linear_regression

from chaos.parts import Part
from chaos.verdict import Verdict

WARM_UP = 30.0  # seconds in which a program may grow as it likes: it meets everything for the first time
SHORTEST = 30.0  # seconds after that; over less, nothing can be said
GROWTH = 10.0  # megabytes by which it may have grown in the end

Sizes = Sequence[tuple[float, float]]  # wall clock, megabytes


def check(programs: Collection[Part], verdict: Verdict) -> None:
    """Judge every life, and say what the longest ones looked like."""
    verdict.judge(
        f"memory stays flat: no life has grown by more than {GROWTH:g} MB after its first {WARM_UP:g} s",
        [
            f"{part.name}, life {number}: by {grown:.1f} MB in {life[-1][0] - life[0][0]:.0f} s"
            for part in programs
            for number, life in enumerate(part.memory, 1)
            if (grown := growth(life)) is not None and grown > GROWTH
        ],
    )
    verdict.figures.append("memory over the longest lives: " + ", ".join(_describe(part) for part in programs))


def growth(life: Sizes) -> float | None:
    """Return by how many megabytes a life has grown steadily after the warm-up; None if it is too short.

    That is twice what the line of best fit rises in the half in which it rises less.
    """
    warm = [(at, size) for at, size in life if at >= life[0][0] + WARM_UP]  # nothing, of an empty life
    if len(warm) < 4 or warm[-1][0] - warm[0][0] < SHORTEST:
        return None
    middle = len(warm) // 2
    return 2 * min(_rise(warm[:middle]), _rise(warm[middle:]))


def _rise(sizes: Sizes) -> float:
    return linear_regression(*zip(*sizes, strict=True)).slope * (sizes[-1][0] - sizes[0][0])


def _describe(part: Part) -> str:
    life = max(part.memory, key=lambda sizes: sizes[-1][0] - sizes[0][0] if sizes else 0.0)
    if (grown := growth(life)) is None:
        return f"{part.name} too short"
    return f"{part.name} {life[-1][1]:.0f} MB after {life[-1][0] - life[0][0]:.0f} s ({grown:+.1f} MB)"
