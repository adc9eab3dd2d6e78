"""What a comparison of the outbox with the topic has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

LISTED = 100  # ids or places that are named for each kind of difference


@dataclass(slots=True)
class Differences:
    """How many there are, and the first ones: message ids, or `partition:offset` where there is no id."""

    count: int = 0
    first: list[int | str] = field(default_factory=list)

    def add(self, which: int | str) -> None:
        self.count += 1
        if len(self.first) < LISTED:
            self.first.append(which)


@dataclass(slots=True)
class Comparison:
    """What was compared, and every difference."""

    topic: str
    published: int = 0
    found: int = 0
    duplicates: int = 0
    expired: int = 0  # older than what the topic keeps
    missing: Differences = field(default_factory=Differences)
    differing: Differences = field(default_factory=Differences)
    out_of_order: Differences = field(default_factory=Differences)
    foreign: Differences = field(default_factory=Differences)

    @property
    def differences(self) -> Mapping[str, Differences]:
        names = ("missing", "differing", "out_of_order", "foreign")
        return {name: getattr(self, name) for name in names}

    @property
    def good(self) -> bool:
        return not any(kind.count for kind in self.differences.values())

    def as_dict(self) -> dict[str, object]:
        """The public form: of each kind of difference the first ones, and how many there are in all."""
        kinds = self.differences
        counts = {key: value for key, value in asdict(self).items() if key not in kinds}
        totals = {name: kind.count for name, kind in kinds.items()}
        return counts | {name: kind.first for name, kind in kinds.items()} | {"totals": totals}
