"""`manage.py verify_outbox`: compares what counts as published with what is in the topic."""

import argparse
import json
from datetime import datetime

from django.conf import settings
from django.core.management import CommandError, CommandParser

from outbox.publisher import BrokerUnavailable
from outbox.reading import Reader
from outbox.verification import verify
from pinpromo import commands


class Command(commands.Command):
    help = (
        "Compare the published messages with the topic: each is there, in order, with the same bytes, and nothing else "
        "is. Exit 1 if not."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--topic", default=settings.OUTBOX_TOPICS[0], help="(default: %(default)s)")
        parser.add_argument("--since", type=_instant, metavar="ISO8601", help="published at this moment or later")
        parser.add_argument("--until", type=_instant, metavar="ISO8601", help="published before this moment")
        parser.add_argument("--json", action="store_true", help="print the result as a JSON object")

    def run(self, options: argparse.Namespace) -> None:
        if not settings.KAFKA_BOOTSTRAP_SERVERS:
            raise CommandError("KAFKA_BOOTSTRAP_SERVERS is not set", returncode=2)
        try:
            with Reader(settings.KAFKA_BOOTSTRAP_SERVERS, settings.KAFKA_PROPERTIES, options.topic) as reader:
                comparison = verify(reader, options.topic, since=options.since, until=options.until)
        except BrokerUnavailable as error:
            raise CommandError(f"the topic could not be read ({error})") from error
        result = comparison.as_dict()
        self.print_result(json.dumps(result) if options.json else "\n".join(f"{k}: {v}" for k, v in result.items()))
        if not comparison.good:
            raise CommandError("the outbox and the topic differ")


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an ISO 8601 time") from None
    if instant.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} has no UTC offset; add one, such as Z or +00:00")
    return instant
