"""The expiry worker's own metrics. Only the worker imports this: elsewhere they would be exported as zeros."""

import time
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, write_to_textfile

from promotion.expiration import CycleResult

RUNS = Counter(
    "promotion_expire_run_total",
    "Completed expiry cycles. Worry when it stands still for more than two intervals.",
)
DURATION = Histogram(
    "promotion_expire_cycle_duration_seconds",
    "How long a cycle took, in seconds. Worry above 30.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60),
)
ITEMS = Counter(
    "promotion_expire_items_total",
    "Purchases by outcome. Worry when outcome=failed keeps growing.",
    ["outcome"],
)
SKIPPED_LOCKED = Counter(
    "promotion_expire_skip_locked_total",
    "Due purchases passed over because somebody held them locked. Worry when it grows with a single worker.",
)
ERRORS = Counter(
    "promotion_expire_errors_total",
    "Errors by reason: item (one purchase) or infrastructure (the whole batch). Worry when it keeps growing.",
    ["reason"],
)
MISSED = Counter(
    "promotion_expire_ticks_missed_total",
    "Ticks that did not take place: overrun (the cycle before outlasted the interval) or suspended (the process did"
    " not run). Worry when overrun keeps growing.",
    ["reason"],
)
LAST_SUCCESS = Gauge(
    "promotion_expire_last_success_timestamp_seconds",
    "When the last cycle completed, in seconds since 1970. Worry when it is older than two intervals.",
)

for _outcome in ("expired", "failed"):
    ITEMS.labels(_outcome)
for _reason in ("item", "infrastructure"):
    ERRORS.labels(_reason)
for _reason in ("overrun", "suspended"):
    MISSED.labels(_reason)


def count(result: CycleResult) -> None:
    """Add one completed cycle."""
    RUNS.inc()
    DURATION.observe(result.duration_ms / 1000)
    ITEMS.labels("expired").inc(result.expired)
    ITEMS.labels("failed").inc(result.failed)
    ERRORS.labels("item").inc(result.failed)
    ERRORS.labels("infrastructure").inc(result.infrastructure_errors)
    SKIPPED_LOCKED.inc(result.skipped_locked)
    LAST_SUCCESS.set(time.time())


def count_missed(reason: str, ticks: int) -> None:
    """Add `ticks` that did not take place."""
    MISSED.labels(reason).inc(ticks)


def count_outage() -> None:
    """Add one cycle that the infrastructure ended."""
    ERRORS.labels("infrastructure").inc()


def write_textfile(path: Path) -> None:
    """Write for node_exporter's textfile collector when the last cycle completed: a one-off run's sign of life.

    The file is replaced in one step. Raises OSError.
    """
    registry = CollectorRegistry()
    registry.register(LAST_SUCCESS)
    write_to_textfile(str(path), registry)
