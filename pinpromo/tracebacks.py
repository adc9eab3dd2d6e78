"""Errors as text for the logs: where and what, without any value of a row, a secret or a local variable."""

import sys
import traceback
from collections.abc import Iterator
from types import TracebackType

from structlog.typing import EventDict, WrappedLogger

from pinpromo import failures

FRAMES = 40  # of one error, the innermost ones: a runaway recursion stays one line


def scrub(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace `exc_info`, in each form that loggers accept, by the key `exception`: one text."""
    error = _error_of(event.pop("exc_info", None))
    if error is not None:
        event["exception"] = describe(error)
    return event


def describe(error: BaseException) -> str:
    """Return the error and what led to it, newest first, each with the places in the code it came through."""
    return "\n".join(_lines(error))


def _lines(error: BaseException) -> Iterator[str]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        yield ("caused by " if seen else "") + failures.describe(current)
        yield from _places(current.__traceback__)
        seen.add(id(current))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _places(trace: TracebackType | None) -> Iterator[str]:
    frames = traceback.extract_tb(trace)
    if len(frames) > FRAMES:
        yield f"  ... {len(frames) - FRAMES} more"
    for frame in frames[-FRAMES:]:
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"


def _error_of(exc_info: object) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1] if isinstance(exc_info[1], BaseException) else None
    return sys.exc_info()[1] if exc_info else None
