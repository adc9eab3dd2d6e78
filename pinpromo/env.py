"""Reads typed settings from the environment; every bad value is one clear line.

A value that is empty counts as unset, so that `VARIABLE=` in a compose file means its default.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

_env = environ.Env()

# librdkafka properties on which the delivery promise rests: not for the environment to change.
KAFKA_RESERVED = {
    "acks": "every in-sync replica must acknowledge",
    "bootstrap.servers": "KAFKA_BOOTSTRAP_SERVERS sets it",
    "delivery.timeout.ms": "the relay bounds its transactions by it",
    "enable.gapless.guarantee": "the order of a purchase's events rests on it",
    "enable.idempotence": "the order of a purchase's events rests on it",
    "message.timeout.ms": "the relay bounds its transactions by it",
    "partitioner": "it agrees with the Java clients",
    "request.required.acks": "every in-sync replica must acknowledge",
    "transactional.id": "the relay is not transactional",
}


def load(path: Path) -> None:
    """Read the `.env` file at `path`, if there is one; the real environment wins over it."""
    if path.is_file():
        _env.read_env(str(path))


def text(name: str, *, default: str | None = None, hint: str = "") -> str:
    """Return a text; with no `default` the variable is required, and `hint` says what to set."""
    value = os.environ.get(name, "")
    if value:
        return value
    if default is None:
        raise ImproperlyConfigured(f"{name} is not set. {hint}".strip())
    return default


def flag(name: str, *, default: bool) -> bool:
    """Return a boolean (`true`/`false`, `yes`/`no`, `on`/`off`, `1`/`0`)."""
    value = text(name, default=str(default)).strip().lower()
    if value in {"true", "yes", "on", "1"}:
        return True
    if value in {"false", "no", "off", "0"}:
        return False
    raise ImproperlyConfigured(f"{name} is {value!r}: set it to true or false.")


def names(name: str) -> list[str]:
    """Return a comma-separated list."""
    return [part.strip() for part in text(name, default="").split(",") if part.strip()]


def number(name: str, *, default: float, low: float, high: float) -> float:
    """Return a finite number between `low` and `high`, both included."""
    value = text(name, default=str(default))
    try:
        parsed = float(value)
    except ValueError:
        parsed = math.nan
    if not low <= parsed <= high:
        raise ImproperlyConfigured(f"{name} is {value!r}: set it to a number from {low:g} to {high:g}.")
    return parsed


def whole(name: str, *, default: int, low: int, high: int) -> int:
    """Return a whole number between `low` and `high`, both included."""
    value = text(name, default=str(default))
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(digits) <= high):
        raise ImproperlyConfigured(f"{name} is {value!r}: set it to a whole number from {low} to {high}.")
    return int(digits)


def postgres(name: str) -> dict[str, Any]:
    """Return Django's settings for the PostgreSQL address in the variable `name`."""
    form = "postgres://USER:PASSWORD@HOST:5432/DATABASE"
    url = text(name, hint=f"Set it to the database's address, such as {form}")
    if not url.startswith(("postgres://", "postgresql://")):
        raise ImproperlyConfigured(f"{name} names no PostgreSQL database: set it to {form}")
    try:
        config: dict[str, Any] = _env.db_url_config(url)
    except (ValueError, KeyError) as error:
        raise ImproperlyConfigured(f"{name} cannot be read: set it to {form}") from error
    if not config.get("NAME"):
        raise ImproperlyConfigured(f"{name} names no database: set it to {form}")
    return config


def kafka_properties(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the librdkafka properties given as `KAFKA_*`: `KAFKA_SASL_MECHANISM` is `sasl.mechanism`."""
    properties = {}
    for name, value in environment.items():
        if not name.startswith("KAFKA_") or name == "KAFKA_BOOTSTRAP_SERVERS" or not value:
            continue
        key = name.removeprefix("KAFKA_").lower().replace("_", ".")
        if key in KAFKA_RESERVED:
            raise ImproperlyConfigured(f"{name} cannot be changed ({KAFKA_RESERVED[key]}): unset it.")
        properties[key] = value
    return properties
