"""`manage.py requeue_outbox`: makes parked messages pending again."""

import argparse
import getpass

from django.core.management import CommandError, CommandParser

from outbox.models import Outbox
from outbox.operations import requeue
from pinpromo import commands
from pinpromo.deadline import deadline

BATCH = 1_000
SECONDS = 30.0  # for one of them


class Command(commands.Command):
    help = "Make parked messages pending again, with all their attempts. They go out in their old order."

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("ids", nargs="*", type=commands.whole(1, 2**63 - 1), default=[], metavar="ID")
        what.add_argument("--topic", help="every parked message for this topic")
        what.add_argument("--all", action="store_true", help="every parked message; skipped ones only by their id")

    def run(self, options: argparse.Namespace) -> None:
        ids = options.ids or self._parked(options.topic)
        changed: list[int] = []
        for start in range(0, len(ids), BATCH):
            with deadline(SECONDS):
                changed += requeue(ids[start : start + BATCH], by=getpass.getuser())
        self.print_result(f"requeued {len(changed)}")
        if options.ids and (left := sorted(set(ids) - set(changed))):
            raise CommandError(f"not parked, or locked by somebody: {', '.join(map(str, left))}")

    def _parked(self, topic: str | None) -> list[int]:
        parked = Outbox.objects.parked()
        if topic is not None:
            parked = parked.filter(topic=topic)
        with deadline(SECONDS):
            return list(parked.order_by("id").values_list("id", flat=True))
