"""`manage.py prune_outbox`: deletes published messages that are past their retention time."""

import argparse

from outbox.retention import BATCH, prune
from pinpromo import commands
from pinpromo.stop import Stop


class Command(commands.Command):
    help = (
        "Delete the messages published longer ago than OUTBOX_RETENTION_DAYS, in small batches. "
        "The looping relay does the same by itself."
    )

    def run(self, _options: argparse.Namespace) -> None:
        total = 0
        with Stop() as stop:
            while not stop.requested:
                deleted = prune()
                total += deleted
                if deleted < BATCH:
                    break
        self.print_result(f"pruned {total}")
