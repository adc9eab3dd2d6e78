"""What a cycle has before it, found out by one statement without a transaction: mostly nothing.

Note [Low mark]: until vacuum takes them away, and no vacuum can while somebody holds an old snapshot, the index keeps
an entry of each purchase that has expired; a look over everything due walks over all of them. So the cycles of a drain
start where the cycle before found the oldest. That alone would pass over a purchase that a slow transaction commits
late with an earlier end, so a look goes over everything again once a second, at the start of every tick, and before
a batch that came short is believed to be the last.
"""

from __future__ import annotations

import time
import uuid
from datetime import datetime
from typing import NamedTuple

from promotion.claiming import rows
from promotion.models import EARLIEST

WHOLE_EVERY = 1.0  # seconds

_LOOK = """
SELECT statement_timestamp(), (
    SELECT ends_at FROM promotion.promotion_purchases
    WHERE status = 'Active' AND ends_at >= %(since)s AND ends_at <= LEAST(%(as_of)s, statement_timestamp())
        AND id NOT IN (SELECT purchase_id FROM promotion.expiration_failures)
    ORDER BY ends_at LIMIT 1
), ARRAY(
    SELECT purchase_id FROM promotion.expiration_failures ORDER BY last_failed_at, purchase_id LIMIT %(retries)s
), %(since)s
"""


class Outlook(NamedTuple):
    """What one look has found."""

    database_now: datetime
    oldest_due: datetime | None  # the `ends_at` of the oldest due purchase that is not stuck, be it locked
    stuck: list[uuid.UUID]  # those first that were tried longest ago
    since: datetime  # what ends before was not looked at


def look_ahead(as_of: datetime, *, retries: int, since: datetime = EARLIEST) -> Outlook:
    """Return what is due at `as_of`, or at the database's time if that is earlier, and up to `retries` stuck ones."""
    (row,) = rows(_LOOK, {"as_of": as_of, "retries": retries, "since": since})
    return Outlook(*row)


class LowMark:
    """Where the looks of one process begin: at the oldest due purchase that the last one found."""

    def __init__(self) -> None:
        self._oldest = EARLIEST
        self._whole_at = 0.0

    def look_ahead(self, as_of: datetime, *, retries: int) -> Outlook:
        """Look from the mark on, or over everything if that is due or the stuck are to be retried; move the mark."""
        now = time.monotonic()
        whole = retries > 0 or now - self._whole_at >= WHOLE_EVERY
        outlook = look_ahead(as_of, retries=retries, since=EARLIEST if whole else self._oldest)
        self._oldest = outlook.oldest_due or EARLIEST
        if outlook.since == EARLIEST:
            self._whole_at = now
        return outlook
