"""The expiry cycle: due purchases become Expired, each with one event, in one transaction per batch.

Note [Poison]: a purchase that cannot be expired leaves the batch and is remembered as stuck, in a transaction of
its own; its place goes to the next due purchase in the same cycle. Stuck ones are not selected with the others,
so they never stand in front of healthy ones; they are tried again at the start of every cycle, longest ago first.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.db import Error

from pinpromo import failures
from pinpromo.deadline import deadline
from pinpromo.transactions import bounded
from promotion import events
from promotion.batches import SETTLE_SECONDS, Batch, expire_batch, remaining, settle
from promotion.claiming import Candidates, Place
from promotion.models import EARLIEST, ExpirationFailure
from promotion.outlook import LowMark, Outlook, look_ahead
from promotion.tracing import cycle_span

log = structlog.get_logger("promotion.expiration")

CLOCK_TOLERANCE = timedelta(seconds=1)
RETRIES = 1_000  # stuck purchases tried again in one cycle: each of 2,000 is tried within two intervals
RETRY_BATCH = 50  # of them in one transaction
RETRY_SHARE = 0.25  # of the budget, at most: the stuck do not starve the healthy


@dataclass(slots=True, kw_only=True)
class CycleResult:
    """What one cycle did (R-14)."""

    run_id: uuid.UUID
    as_of: datetime
    expired: int = 0
    failed: int = 0
    skipped_locked: int = 0
    infrastructure_errors: int = 0
    duration_ms: float = 0.0
    lateness: timedelta = timedelta()  # of the oldest that was expired

    @property
    def selected(self) -> int:
        """How many rows were locked."""
        return self.expired + self.failed

    def add(self, batch: Batch) -> None:
        """Count what became of `batch`."""
        self.expired += len(batch.expired)
        self.failed += len(batch.failed)
        self.skipped_locked += batch.claim.skipped
        ends = [expiry.purchase.ends_at for expiry in batch.expired]
        self.lateness = max(self.lateness, self.as_of - min(ends, default=self.as_of))

    def as_dict(self) -> dict[str, Any]:
        """The public form: `--json`, and the keys of the log event `cycle_completed`."""
        return {
            "run_id": str(self.run_id),
            "as_of": events.rfc3339(self.as_of),
            "selected": self.selected,
            "expired": self.expired,
            "skipped_locked": self.skipped_locked,
            "failed": self.failed,
            "duration_ms": self.duration_ms,
        }


def run_cycle(
    *,
    as_of: datetime,
    batch_size: int,
    budget: float,
    retry_stuck: bool = True,
    mark: LowMark | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> CycleResult:
    """Expire up to `batch_size` purchases that are due at `as_of`, in about `budget` seconds at most.

    Cycles that follow one another without a pause share a `mark`, and are cheaper by it.
    Once `stopping` returns true, no further batch is begun. Raises Django's database errors when the infrastructure
    fails; the batch in hand is then rolled back whole. If batches were committed before, it is counted instead.
    """
    started = time.monotonic()
    run_id = uuid.uuid4()
    with structlog.contextvars.bound_contextvars(run_id=str(run_id), correlation_id=str(run_id)), cycle_span(run_id):
        with deadline(budget):
            outlook = (mark or LowMark()).look_ahead(as_of, retries=RETRIES if retry_stuck else 0)
        result = CycleResult(run_id=run_id, as_of=_not_ahead(as_of, outlook.database_now))
        log.info("cycle_started", as_of=events.rfc3339(result.as_of))
        with _contained(result, always=True):  # whatever the stuck do, the healthy get their turn
            _retry(outlook, result, batch_size=batch_size, until=started + RETRY_SHARE * budget, stopping=stopping)
        with _contained(result):
            _expire_due(outlook, result, batch_size=batch_size, until=started + budget, stopping=stopping)
        result.duration_ms = round((time.monotonic() - started) * 1000, 3)
        log.info("cycle_completed", **result.as_dict())
    return result


def retry_now(purchase_ids: Sequence[uuid.UUID], *, as_of: datetime, budget: float) -> CycleResult:
    """Try to expire these purchases, of which those that are not due are left alone, in about `budget` seconds.

    Raises Django's database errors when the infrastructure fails.
    """
    until = time.monotonic() + budget
    run_id = uuid.uuid4()
    with structlog.contextvars.bound_contextvars(run_id=str(run_id), correlation_id=str(run_id)):
        with deadline(budget):
            outlook = look_ahead(as_of, retries=0)._replace(stuck=list(purchase_ids))
        result = CycleResult(run_id=run_id, as_of=_not_ahead(as_of, outlook.database_now))
        _retry(outlook, result, batch_size=max(1, len(purchase_ids)), until=until, stopping=lambda: False)
    return result


@contextmanager
def _contained(result: CycleResult, *, always: bool = False) -> Iterator[None]:
    """Count a failure of the infrastructure instead of raising it, if batches were committed before, or `always`."""
    try:
        yield
    except Error as error:
        if not (failures.is_infrastructure(error) and (always or result.selected)):
            raise
        result.infrastructure_errors += 1
        log.error("batch_failed", reason=failures.describe(error))


def _expire_due(
    outlook: Outlook, result: CycleResult, *, batch_size: int, until: float, stopping: Callable[[], bool]
) -> None:
    """Expire the oldest; if the batch comes short, look whether there is something due that the mark passed over."""
    fill = partial(_fill, result=result, batch_size=batch_size, until=until, stopping=stopping)
    fill(result.as_of, outlook.oldest_due)
    if outlook.since > EARLIEST and result.expired < batch_size and not stopping():
        passed_over = min(result.as_of, outlook.since - timedelta(microseconds=1))
        with deadline(remaining(until)):
            oldest = look_ahead(passed_over, retries=0).oldest_due
        if oldest is not None:
            fill(passed_over, oldest)


def _fill(
    at: datetime,
    oldest: datetime | None,
    *,
    result: CycleResult,
    batch_size: int,
    until: float,
    stopping: Callable[[], bool],
) -> None:
    """Expire what is due `at` from `oldest` on; as long as poison leaves places free, fill them with the next due."""
    if oldest is None:
        log.info("batch_selected", count=0)
        return
    candidates = Candidates(at=at, after=Place.before(oldest))
    while (places := batch_size - result.expired) > 0 and not stopping():
        batch = _run_batch(candidates, places, result, until=until)
        if not batch.failed or len(batch.claim.purchases) < places:
            return
        candidates = replace(candidates, after=Place.of(batch.claim.purchases[-1]))


def _retry(
    outlook: Outlook, result: CycleResult, *, batch_size: int, until: float, stopping: Callable[[], bool]
) -> None:
    """Try those again that failed in earlier cycles; forget those that are no longer due."""
    stuck = outlook.stuck
    everywhere = Place.before(EARLIEST)
    while stuck and (places := min(RETRY_BATCH, batch_size - result.expired)) > 0:
        if stopping() or time.monotonic() > until:
            return
        tried, stuck = stuck[:places], stuck[places:]
        _run_batch(Candidates(at=result.as_of, after=everywhere, among=tried), places, result, until=until)
        with bounded(seconds=SETTLE_SECONDS):
            ExpirationFailure.objects.forget_settled(tried)


def _run_batch(candidates: Candidates, limit: int, result: CycleResult, *, until: float) -> Batch:
    """Expire a batch, count it, and note what failed."""
    batch = expire_batch(candidates, limit, run_id=result.run_id, at=result.as_of, until=until)
    result.add(batch)  # committed, whatever happens now
    settle(batch, at=result.as_of)
    return batch


def _not_ahead(as_of: datetime, database_now: datetime) -> datetime:
    """Return `as_of`, or the database's time if that is earlier: nothing expires early by a wrong clock."""
    if as_of - database_now > CLOCK_TOLERANCE:
        log.warning("clock_ahead", seconds=(as_of - database_now).total_seconds())
    return min(as_of, database_now)
