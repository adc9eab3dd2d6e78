"""Gauges of what the database holds, read while the web process is scraped: they outlive a dead worker."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

import structlog
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from pinpromo import failures
from pinpromo.database import Outage, interrupter
from pinpromo.transactions import bounded

log = structlog.get_logger("pinpromo.gauges")

# Prometheus gives a scrape 10 seconds: what is read on an open connection has 3, opening a new one 5.
STATEMENT_SECONDS = 2.0
SCRAPE_SECONDS = 3.0

Reader = Callable[[datetime], Iterable[Metric]]


def exposition(readers: Mapping[str, Reader]) -> Callable[[HttpRequest], HttpResponse]:
    """Return the view `/metrics` of the web process: its own metrics, and those of `readers` by name prefix."""
    # A registry of its own: the default one is also exported by the workers, which must not report these.
    states = CollectorRegistry()
    states.register(StateCollector(readers))

    @require_safe
    def metrics(_request: HttpRequest) -> HttpResponse:
        return HttpResponse(generate_latest(REGISTRY) + generate_latest(states), content_type=CONTENT_TYPE_LATEST)

    return metrics


class StateCollector(Collector):
    """Collects what each reader, called with the database's time, finds in the database.

    A reader that fails has no samples and is flagged: `<prefix>_collector_success` is 0. No value is better than a
    wrong one.
    """

    def __init__(self, readers: Mapping[str, Reader]) -> None:
        self._readers = readers
        self._outages = {prefix: Outage() for prefix in readers}

    def describe(self) -> Iterable[Metric]:
        """Name nothing in advance: a registration must not read the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        until = time.monotonic() + SCRAPE_SECONDS
        with cut_off_after(SCRAPE_SECONDS):
            for prefix in self._readers:
                found = self._read(prefix) if time.monotonic() < until else None
                yield from found or ()
                yield GaugeMetricFamily(
                    f"{prefix}_collector_success",
                    f"Whether the other {prefix} gauges could be read, 1 or 0. Worry when it is 0.",
                    value=float(found is not None),
                )

    def _read(self, prefix: str) -> list[Metric] | None:
        found: list[Metric] = []

        def read() -> None:
            with bounded(seconds=STATEMENT_SECONDS):
                found.extend(list(self._readers[prefix](_database_now())))

        try:
            return found if self._outages[prefix].survive(read) else None
        except Error as error:
            log.error("gauges_failed", prefix=prefix, reason=failures.describe(error))
            return None


@contextmanager
def cut_off_after(seconds: float) -> Iterator[None]:
    """Cut this thread's database connection when the block lasts longer: a hung server answers no timeout."""
    timer = threading.Timer(seconds, interrupter(), [1])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
