"""Structured logs on stderr: JSON lines when it is not a terminal, readable text when it is one.

Note [Two ways]: the project's own events go straight to stderr, at a third of what the way through the standard
library costs; records of Django, psycopg, librdkafka and gunicorn come by `logging`. Both get the same keys, among
them `run_id` and `correlation_id` while a cycle runs.
"""

import json
import logging.config
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from pinpromo import tracebacks
from pinpromo.sparing import CrashesAlone, Sparing

_encode_anything = json.JSONEncoder(default=repr).encode
_UNWANTED = {"request", "server_time"}  # attributes that Django adds to its records: one quotes the query string


def configure(*, debug: bool = False) -> None:
    """Send structlog's events, the standard library's records and uncaught errors to stderr in one form."""
    level = logging.DEBUG if debug else logging.INFO
    terminal = sys.stderr is not None and sys.stderr.isatty()
    render = structlog.dev.ConsoleRenderer() if terminal else _render_json
    structlog.configure(
        processors=[_complete, tracebacks.scrub, render],
        logger_factory=_Stderr,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"structured": {"()": _Formatter, "render": render}},
            "filters": {"sparing": {"()": Sparing}, "crashes": {"()": CrashesAlone}},
            "handlers": {
                "stderr": {"class": "logging.StreamHandler", "formatter": "structured", "filters": ["sparing"]}
            },
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                "django.db.backends": {"level": "INFO"},  # below it shows the values of each statement
                "django.request": {"filters": ["crashes"]},
                "axes": {"level": "WARNING"},
            },
        }
    )
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught


class _Stderr:
    """A logger that writes finished lines. A reader that is gone, or a full disk, does no harm to the work."""

    __slots__ = ("name",)

    def __init__(self, name: str = "pinpromo") -> None:
        self.name = name

    def msg(self, line: str) -> None:
        """Write `line` in one piece, so that lines of two threads never mix; or gather it, inside `held_back`."""
        if (lines := _held.get()) is not None:
            lines.append(line)
        else:
            write([line])

    debug = info = warning = error = critical = msg


_held: ContextVar[list[str] | None] = ContextVar("held", default=None)


@contextmanager
def held_back() -> Iterator[list[str]]:
    """Yield a list that gets the lines of the block. They are lost unless they are written later, by `write`."""
    lines: list[str] = []
    token = _held.set(lines)
    try:
        yield lines
    finally:
        _held.reset(token)


def write(lines: Sequence[str]) -> None:
    """Write finished lines, all at once: for hundreds of them it saves a seventh of their time."""
    if sys.stderr is None or not lines:
        return
    try:
        sys.stderr.write("\n".join([*lines, ""]))
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _complete(logger: WrappedLogger, level: str, event: EventDict) -> EventDict:
    """Return the event with what every line has, in the order in which it is read."""
    return _line(time.time_ns(), level, event.pop("event"), logger.name, event)


class _Formatter(logging.Formatter):
    """Turns a record of the standard library into the same line."""

    def __init__(self, render: Processor) -> None:
        super().__init__()
        self._render = render

    def format(self, record: logging.LogRecord) -> str:
        added = record.__dict__.keys() - _STANDARD_ATTRIBUTES - _UNWANTED
        extra = {name: getattr(record, name) for name in sorted(added)} | {"exc_info": record.exc_info}
        created = round(record.created * _SECOND)
        event = _line(created, record.levelname.lower(), record.getMessage(), record.name, extra)
        return str(self._render(None, "", tracebacks.scrub(None, "", event)))


_STANDARD_ATTRIBUTES = logging.makeLogRecord({}).__dict__.keys() | {"message", "taskName"}


_SECOND = 1_000_000_000  # nanoseconds


def _line(nanoseconds: int, level: str, event: str, logger: str, extra: EventDict) -> EventDict:
    seconds, rest = divmod(nanoseconds, _SECOND)
    return {
        "timestamp": f"{_to_the_second(seconds)}.{rest // 1_000:06}Z",
        "level": level,
        "event": event,
        "logger": logger,
        **structlog.contextvars.get_contextvars(),
        **extra,
    }


@lru_cache(maxsize=1)  # the same for many lines
def _to_the_second(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp, UTC).replace(tzinfo=None).isoformat()


def _render_json(_logger: WrappedLogger, _level: str, event: EventDict) -> str:
    try:
        return orjson.dumps(event, default=repr).decode()
    except TypeError:  # such as a lone surrogate, or a very large number
        return _encode_anything(event)


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        structlog.get_logger("pinpromo.logs").critical("crashed", exc_info=error.with_traceback(trace))
