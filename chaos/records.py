"""A message of the topic, as the checks see it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One message as it lies in its topic."""

    topic: str
    partition: int
    offset: int
    at: float
    key: str
    value: str
    headers: dict[str, str]
