"""What the management commands share: results on stdout, one clear line for each anticipated failure."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

import structlog
from django.core.management import BaseCommand, CommandError
from django.db import Error

from pinpromo import failures, tracing

log = structlog.get_logger("pinpromo.commands")


class Command(BaseCommand):
    """A command whose `run` gets its options typed as a namespace; database errors become one line and exit 1."""

    def handle(self, *_arguments: Any, **options: Any) -> None:
        tracing.start(f"pinpromo-{type(self).__module__.rpartition('.')[2].replace('_', '-')}")
        try:
            self.run(argparse.Namespace(**options))
        except Error as error:
            raise CommandError(failures.advise(error)) from error

    def run(self, options: argparse.Namespace) -> None:
        raise NotImplementedError

    def print_result(self, line: str) -> None:
        """Print one line to stdout at once. A closed stdout, or one on a full disk, does no harm to the work."""
        try:
            self.stdout.write(line)
            self.stdout.flush()
        except OSError as error:
            log.warning("stdout_lost", reason=error.strerror)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def number(low: float, high: float) -> Callable[[str], float]:
    """Return an argument type: a number from `low` to `high`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low:g} to {high:g}")
        return value

    return parse


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return an argument type: a whole number from `low` to `high`."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return parse
