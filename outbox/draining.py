"""What `relay_outbox` runs: cycles until nothing publishable is left, through outages of the broker."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable

import structlog
from django.utils import timezone

from outbox.publisher import BrokerUnavailable, Publisher
from outbox.relay import CycleResult, run_cycle
from pinpromo.outages import OutageLog
from pinpromo.stop import Stop

log = structlog.get_logger("outbox.relay")

LONGEST_BACK_OFF = 5.0  # seconds between two attempts to reach the broker


class Relay:
    """Drains the outbox into Kafka. While the broker is away, no transaction is opened."""

    def __init__(
        self,
        publisher: Publisher,
        *,
        stop: Stop,
        batch_size: int,
        on_cycle: Callable[[CycleResult], None] = lambda _result: None,
    ) -> None:
        self._publisher = publisher
        self._stop = stop
        self._batch_size = batch_size
        self._on_cycle = on_cycle
        self._outage = OutageLog("broker")
        self._failures = 0
        self._retry_at = 0.0

    def drain(self) -> bool:
        """Run cycles until one finds nothing to publish. Return whether the broker can be reached.

        Raises Django's database errors.
        """
        if time.monotonic() < self._retry_at:
            return False
        while not self._stop.requested:
            if not self._reaches_broker():
                return False
            with structlog.contextvars.bound_contextvars(run_id=str(uuid.uuid4())):
                result = self._cycle()
            if result.outage:
                return False
            if not result.claimed:
                return True
        return True

    def _reaches_broker(self) -> bool:
        try:
            self._publisher.probe()
        except BrokerUnavailable as error:
            self._broker_failed(str(error))
            return False
        return True

    def _cycle(self) -> CycleResult:
        result = run_cycle(self._publisher, at=timezone.now(), batch_size=self._batch_size, stop=self._stop)
        self._on_cycle(result)
        if result.claimed:
            _log_cycle(result)
        if result.outage:
            self._broker_failed(result.outage)
        else:
            self._broker_answered()
        return result

    def _broker_failed(self, reason: str) -> None:
        self._outage.failed(reason)
        back_off = min(LONGEST_BACK_OFF, 0.25 * 2.0 ** min(self._failures, 10))
        self._failures += 1
        self._retry_at = time.monotonic() + back_off * random.uniform(0.5, 1.0)  # noqa: S311 - not a secret

    def _broker_answered(self) -> None:
        self._outage.recovered()
        self._failures = 0


def _log_cycle(result: CycleResult) -> None:
    log.info(
        "messages_published",
        published=result.published,
        failed=result.failed,
        parked=result.parked,
        duration_ms=result.duration_ms,
    )
