"""`manage.py relay_outbox`: publishes the recorded messages to Kafka."""

import argparse
import json
import time

from django.conf import settings
from django.core.management import CommandError, CommandParser
from django.utils import timezone

from outbox import metrics
from outbox.draining import Relay
from outbox.models import Outbox
from outbox.publisher import InvalidProperty, Publisher
from outbox.relay import CycleResult
from outbox.retention import Pruner
from outbox.wakeup import Listener
from pinpromo import commands, loop, ops
from pinpromo.database import interrupter
from pinpromo.deadline import deadline
from pinpromo.pulse import Pulse
from pinpromo.stop import Stop

DRAIN_BUDGET = 30.0  # seconds in which a cycle must end, for the watchdog
OTHERS_SECONDS = 15.0  # a transaction of another relay is over by then
OTHERS_POLL = 0.1
QUERY_SECONDS = 30.0  # for a look at the outbox: a connection that has gone silent would hold a one-off for ever


class Command(commands.Command):
    help = "Publish the recorded messages: until none is left, or with --loop for ever."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--loop", action="store_true", help="run until SIGTERM or SIGINT")
        parser.add_argument(
            "--batch-size",
            type=commands.whole(1, 10_000),
            default=settings.OUTBOX_BATCH_SIZE,
            metavar="N",
            help="messages per cycle, at most (default: %(default)s)",
        )
        parser.add_argument("--json", action="store_true", help="without --loop: print the result as a JSON object")
        parser.add_argument(
            "--ops-port",
            type=commands.whole(0, 65_535),
            default=settings.OPS_PORT,
            metavar="P",
            help="with --loop: serve /metrics, /healthz and /readyz on this port (default: %(default)s; 0: off)",
        )

    def run(self, options: argparse.Namespace) -> None:
        self.options = options
        self.totals = CycleResult()
        try:
            self.publisher = Publisher(_bootstrap_servers(), settings.KAFKA_PROPERTIES)
        except InvalidProperty as error:
            raise CommandError(str(error), returncode=2) from error
        if options.loop:
            self._loop()
        else:
            self._once()

    def _loop(self) -> None:
        pulse = Pulse()
        listener = Listener()
        pruner = Pruner()
        if self.options.ops_port:
            ops.serve(self.options.ops_port, pulse)
        pulse.watch()
        with Stop(interrupter()) as stop:
            relay = self._relay(stop, pulse)

            def work() -> bool:
                listener.clear()
                reachable = relay.drain()
                pruner.prune_if_time()
                return reachable

            loop.run(
                work,
                interval=settings.OUTBOX_POLL_INTERVAL,
                budget=DRAIN_BUDGET,
                stop=stop,
                pulse=pulse,
                wakers=listener.descriptors,
            )
        listener.close()

    def _once(self) -> None:
        with Stop(interrupter()) as stop:
            reachable = self._drain_all(self._relay(stop, Pulse()), stop)
        with deadline(QUERY_SECONDS):
            pending = Outbox.objects.pending().count()
        self._print(pending)
        if not reachable:
            raise CommandError(f"the broker could not be reached; {pending} messages are pending")
        if pending:
            raise CommandError(f"{pending} messages are still pending")

    def _drain_all(self, relay: Relay, stop: Stop) -> bool:
        """Drain, and wait for what other relays have in hand. Return whether the broker could be reached."""
        patient_until = time.monotonic() + OTHERS_SECONDS
        while not stop.requested and _is_work_left():
            before = self.totals.claimed
            if not relay.drain():
                return False
            if self.totals.claimed > before:
                patient_until = time.monotonic() + OTHERS_SECONDS
            elif time.monotonic() > patient_until:
                return True
            else:
                stop.wait(OTHERS_POLL)
        return True

    def _relay(self, stop: Stop, pulse: Pulse) -> Relay:
        def on_cycle(result: CycleResult) -> None:
            pulse.expect_within(DRAIN_BUDGET)
            metrics.count(result)
            self.totals.claimed += result.claimed
            self.totals.published += result.published
            self.totals.failed += result.failed
            self.totals.parked += result.parked

        return Relay(self.publisher, stop=stop, batch_size=self.options.batch_size, on_cycle=on_cycle)

    def _print(self, pending: int) -> None:
        totals = self.totals
        if self.options.json:
            counts = {"published": totals.published, "failed": totals.failed, "parked": totals.parked}
            self.print_result(json.dumps(counts | {"pending": pending}))
        else:
            self.print_result(
                f"published {totals.published}, failed {totals.failed}, parked {totals.parked}, pending {pending}"
            )


def _is_work_left() -> bool:
    with deadline(QUERY_SECONDS):
        return Outbox.objects.publishable(at=timezone.now()).exists()


def _bootstrap_servers() -> str:
    servers: str = settings.KAFKA_BOOTSTRAP_SERVERS
    if not servers:
        raise CommandError(
            "KAFKA_BOOTSTRAP_SERVERS is not set. Set it to the brokers' addresses, such as kafka-1:9092,kafka-2:9092",
            returncode=2,
        )
    return servers
