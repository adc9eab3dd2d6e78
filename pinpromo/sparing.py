"""Keeps libraries that complain at every attempt, or again, from filling the logs."""

import logging
import re
import time

EVERY = 60.0  # seconds between two lines that say the same
REMEMBERED = 1_000  # texts, at most

LIBRARIES = ("opentelemetry", "urllib3")


class Sparing(logging.Filter):
    """Lets each of the LIBRARIES say the same only once a minute; texts that differ in numbers are the same."""

    def __init__(self) -> None:
        super().__init__()
        self._quiet_until: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is worth a line."""
        if not record.name.startswith(LIBRARIES):
            return True
        key = (record.name, re.sub("[0-9]+", "", record.getMessage()))
        now = time.monotonic()
        if now < self._quiet_until.get(key, 0.0):
            return False
        if len(self._quiet_until) >= REMEMBERED:
            self._quiet_until.clear()
        self._quiet_until[key] = now + EVERY
        return True


class CrashesAlone(logging.Filter):
    """Of Django's lines on answers of 500 and more, lets through those on uncaught errors.

    Whoever answers so on purpose has said why in a line of its own.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is worth a line."""
        return record.levelno < logging.ERROR or record.exc_info is not None
