"""The log of an outage: one line when it begins, one a minute while it lasts, one when it is over."""

import time

import structlog

log = structlog.get_logger("pinpromo.outages")

REPORT_EVERY = 60.0  # seconds between two log lines of one outage


class OutageLog:
    """Tells of the outages of one thing: the log events are `<thing>_failed` and `<thing>_recovered`."""

    def __init__(self, thing: str) -> None:
        self._failed_event = f"{thing}_failed"
        self._recovered_event = f"{thing}_recovered"
        self._began: float | None = None
        self._reported = 0.0

    def failed(self, reason: str) -> None:
        """Note that an attempt has failed just now."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
        elif now - self._reported < REPORT_EVERY:
            return
        self._reported = now
        log.error(self._failed_event, reason=reason, outage_seconds=round(now - self._began, 1))

    def recovered(self) -> None:
        """Note that an attempt has succeeded just now."""
        if self._began is not None:
            log.info(self._recovered_event, outage_seconds=round(time.monotonic() - self._began, 1))
            self._began = None
