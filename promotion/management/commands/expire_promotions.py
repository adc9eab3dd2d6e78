"""`manage.py expire_promotions`: ends the purchases whose time is over."""

import argparse
import json
import time
from datetime import datetime
from pathlib import Path

import structlog
from django.conf import settings
from django.core.management import CommandError, CommandParser
from django.db import Error
from django.utils import timezone

from pinpromo import commands, loop, ops
from pinpromo.database import interrupter
from pinpromo.pulse import Pulse
from pinpromo.stop import Stop
from promotion import history, metrics
from promotion.expiration import CycleResult, run_cycle
from promotion.outlook import LowMark
from promotion.preview import preview_cycle

log = structlog.get_logger("promotion.expire_promotions")

FAILED_ITEMS_EXIT_CODE = 3


class Command(commands.Command):
    help = "End the purchases whose time is over: one cycle, or with --loop one every interval."

    def add_arguments(self, parser: CommandParser) -> None:
        low = settings.EXPIRE_PROMOTIONS_MIN_INTERVAL
        parser.add_argument("--loop", action="store_true", help="run until SIGTERM or SIGINT")
        parser.add_argument(
            "--interval",
            type=commands.number(low, 300),
            default=settings.EXPIRE_PROMOTIONS_INTERVAL,
            metavar="S",
            help="seconds between two ticks of the loop (default: %(default)g)",
        )
        parser.add_argument(
            "--batch-size",
            type=commands.whole(1, 10_000),
            default=settings.EXPIRE_PROMOTIONS_BATCH_SIZE,
            metavar="N",
            help="purchases per cycle, at most (default: %(default)s)",
        )
        parser.add_argument("--drain", action="store_true", help="after a full cycle, run the next at once")
        parser.add_argument("--dry-run", action="store_true", help="say what would expire; change nothing")
        parser.add_argument(
            "--as-of",
            type=_past_instant,
            metavar="ISO8601",
            help="expire what was due at this moment, such as 2026-01-31T09:30:00+00:00 (default: now)",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object a cycle")
        parser.add_argument("--strict", action="store_true", help="exit with 3 if a purchase failed (not with --loop)")
        parser.add_argument(
            "--ops-port",
            type=commands.whole(0, 65_535),
            default=settings.OPS_PORT,
            metavar="P",
            help="with --loop: serve /metrics, /healthz and /readyz on this port (default: %(default)s; 0: off)",
        )
        parser.add_argument(
            "--metrics-textfile",
            type=Path,
            metavar="PATH",
            help="after each cycle, write its time for node_exporter's textfile collector",
        )

    def run(self, options: argparse.Namespace) -> None:
        self.options, self.mark = options, LowMark()
        for name in ("as_of", "strict", "dry_run"):
            if options.loop and getattr(options, name):
                flag = "--" + name.replace("_", "-")
                raise CommandError(f"{flag} cannot be used with --loop", returncode=2)
        if options.dry_run:
            self._preview()
        elif options.loop:
            self._loop()
        else:
            self._once()

    def _preview(self) -> None:
        as_of = self.options.as_of or timezone.now()
        result = preview_cycle(as_of=as_of, batch_size=None if self.options.drain else self.options.batch_size)
        self._print(result, dry_run=True)

    def _once(self) -> None:
        with Stop(interrupter()) as stop:
            try:
                self._tick(stop, until=None)
            except Error:
                if not stop.hurried:
                    raise
        if self.failed and self.options.strict:
            raise CommandError(f"{self.failed} purchases could not be expired", returncode=FAILED_ITEMS_EXIT_CODE)

    def _loop(self) -> None:
        budget = settings.EXPIRE_PROMOTIONS_TICK_BUDGET
        pulse = Pulse()
        if self.options.ops_port:
            ops.serve(self.options.ops_port, pulse)
        pulse.watch()
        with Stop(interrupter()) as stop:
            loop.run(
                lambda: self._tick(stop, until=time.monotonic() + budget),
                interval=self.options.interval,
                budget=budget,
                stop=stop,
                pulse=pulse,
                on_missed=metrics.count_missed,
                on_outage=metrics.count_outage,
            )

    def _tick(self, stop: Stop, *, until: float | None) -> None:
        """Run one cycle, or with --drain cycles until one is not full."""
        self.failed, first = 0, True
        while True:
            result = self._cycle(stop, retry_stuck=first)
            self.failed, first = self.failed + result.failed, False
            more = self.options.drain and result.expired == self.options.batch_size
            if not more or stop.requested or (until is not None and time.monotonic() >= until):
                return

    def _cycle(self, stop: Stop, *, retry_stuck: bool) -> CycleResult:
        result = run_cycle(
            as_of=self.options.as_of or timezone.now(),
            batch_size=self.options.batch_size,
            budget=settings.EXPIRE_PROMOTIONS_TICK_BUDGET,
            retry_stuck=retry_stuck,
            mark=self.mark,
            stopping=lambda: stop.requested,
        )
        metrics.count(result)
        self._print(result)
        history.remember(result)
        if self.options.metrics_textfile:
            self._write_textfile(self.options.metrics_textfile)
        return result

    def _write_textfile(self, path: Path) -> None:
        try:
            metrics.write_textfile(path)
        except OSError as error:
            if not self.options.loop:
                raise CommandError(f"{path} cannot be written: {error.strerror}") from error
            log.error("textfile_failed", path=str(path), reason=error.strerror)

    def _print(self, result: CycleResult, *, dry_run: bool = False) -> None:
        if self.options.json:
            self.print_result(json.dumps(result.as_dict() | ({"dry_run": True} if dry_run else {})))
            return
        self.print_result(
            f"{'would expire' if dry_run else 'expired'} {result.expired}, failed {result.failed}, "
            f"skipped {result.skipped_locked} locked, in {result.duration_ms:.0f} ms (run {result.run_id})"
        )


def _past_instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an ISO 8601 time") from None
    if instant.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} has no UTC offset; add one, such as Z or +00:00")
    if instant > timezone.now():
        raise argparse.ArgumentTypeError(f"{text!r} is in the future; nothing expires early")
    return instant
