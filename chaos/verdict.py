"""What the checks have found, and the figures that go with it."""

from dataclasses import dataclass, field

EXAMPLES = 3  # of a broken promise, in the report


@dataclass(slots=True)
class Verdict:
    """Promises kept and broken; `figures` are for the reader."""

    kept: list[str] = field(default_factory=list)
    broken: dict[str, list[str]] = field(default_factory=dict)
    figures: list[str] = field(default_factory=list)

    def judge(self, promise: str, breaches: list[str]) -> None:
        """Note the promise as kept if there is no breach of it."""
        if breaches:
            self.broken[promise] = breaches
        else:
            self.kept.append(promise)

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not self.broken

    def lines(self) -> list[str]:
        """Return the verdict for a person."""
        lines = [f"  kept    {promise}" for promise in self.kept]
        for promise, breaches in self.broken.items():
            lines.append(f"  BROKEN  {promise}: {len(breaches)} times")
            lines += [f"            {breach}" for breach in breaches[:EXAMPLES]]
        return lines
