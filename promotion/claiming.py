"""Which purchases a batch takes, their targets, and the change itself: the statements of the expiry cycle.

The claim is Django's `select_for_update(skip_locked=True)`. Its rows are read in binary form, and the statements
beside it are written out, because the ORM costs 10 ms of Python more for 200 purchases (docs/performance.md).

Note [Plan]: a planner whose statistics say that hardly anything is due would collect all that is and sort it, for each
batch: a second, with a backlog of a million. So sorting is not an option for a batch's transaction.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

from django.db.models import Q

from pinpromo.database import asking, plain_cursor
from pinpromo.isolation import Refused
from promotion.events import Target
from promotion.models import PromotionPurchase

_FIELDS = [field.attname for field in PromotionPurchase._meta.concrete_fields]  # noqa: SLF001 - Django documents it
_ID, _ENDS_AT = _FIELDS.index("id"), _FIELDS.index("ends_at")
_LAST_ID = uuid.UUID(int=2**128 - 1)
_COUNT = """
SELECT count(*) FROM promotion.promotion_purchases
WHERE status = 'Active' AND (ends_at, id) > (%s, %s) AND (ends_at, id) <= (%s, %s)
    AND id <> ALL(%b) AND id NOT IN (SELECT purchase_id FROM promotion.expiration_failures)
"""
_WITHOUT_SORT = "SELECT set_config('enable_sort', 'off', true)"
_TARGETS = """
SELECT id, purchase_id, target_type, target_id FROM promotion.promotion_purchase_targets
WHERE purchase_id = ANY(%(ids)b)
"""
_EXPIRE = """
UPDATE promotion.promotion_purchases SET status = 'Expired', updated_at = %(at)s, version = version + 1
WHERE id = ANY(%(ids)b) AND status = 'Active'
"""


class Place(NamedTuple):
    """Where a purchase stands in the order of expiry."""

    ends_at: datetime
    id: uuid.UUID

    @classmethod
    def of(cls, purchase: PromotionPurchase) -> Self:
        """Return the place of `purchase`."""
        return cls(purchase.ends_at, purchase.pk)

    @classmethod
    def before(cls, ends_at: datetime) -> Self:
        """Return the last place in front of all that end at `ends_at`."""
        return cls(ends_at - timedelta(microseconds=1), _LAST_ID)

    @property
    def behind(self) -> Q:
        """The condition for purchases that stand behind this place: `ends_at` alone bounds the scan of the index."""
        return Q(ends_at__gte=self.ends_at) & ~Q(ends_at=self.ends_at, id__lte=self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The purchases due `at` an instant that a batch may take: those behind `after` that are not stuck, or `among`."""

    at: datetime
    after: Place
    among: list[uuid.UUID] | None = None

    def lock(self, limit: int) -> Claim:
        """Lock the `limit` oldest, passing over rows that somebody else holds locked."""
        due = PromotionPurchase.objects.due(self.at).filter(self.after.behind)
        wanted = due.not_stuck() if self.among is None else due.filter(pk__in=self.among)
        claim = wanted.oldest_first().select_for_update(skip_locked=True)[:limit]
        if self.among is None:
            rows(_WITHOUT_SORT, ())
        locked = rows(*claim.query.sql_with_params())
        ids = [row[_ID] for row in locked]
        with asking(_TARGETS, {"ids": ids}) as targets:
            purchases = [PromotionPurchase.from_db(claim.db, _FIELDS, row) for row in locked]
        ((skipped,),) = rows(_COUNT, [*self.after, *self._end(locked, limit), ids])
        return Claim(purchases, _by_purchase(targets.fetchall()), skipped)

    def _end(self, locked: Sequence[tuple[Any, ...]], limit: int) -> Place:
        """Return the place up to which candidates that are not `locked` count as skipped."""
        if self.among is not None:
            return self.after  # they are known to be poison
        if len(locked) < limit:
            return Place(self.at, _LAST_ID)
        return Place(locked[-1][_ENDS_AT], locked[-1][_ID])


class Claim(NamedTuple):
    """What a batch has locked, oldest first, and has to know of it."""

    purchases: list[PromotionPurchase]
    targets: Mapping[uuid.UUID, Sequence[Target]]  # by the purchase's id
    skipped: int  # candidates that stand before the last one, or all if there were not enough, but the locked


def targets_of(purchases: Sequence[PromotionPurchase]) -> Mapping[uuid.UUID, Sequence[Target]]:
    """Return the targets by purchase id, in the order in which they were added; none for an unknown id."""
    return _by_purchase(rows(_TARGETS, {"ids": [purchase.pk for purchase in purchases]}))


def _by_purchase(found: Sequence[tuple[int, uuid.UUID, str, uuid.UUID]]) -> Mapping[uuid.UUID, Sequence[Target]]:
    targets: dict[uuid.UUID, list[Target]] = defaultdict(list)
    for _id, purchase_id, kind, target_id in sorted(found):
        targets[purchase_id].append(Target(kind, target_id))
    return targets


@contextmanager
def expiring(purchase_ids: Sequence[uuid.UUID], *, at: datetime) -> Iterator[None]:
    """Have the database write the expiry at `at` while the block runs. Raises Refused unless all were still Active."""
    with asking(_EXPIRE, {"at": at, "ids": purchase_ids}) as update:
        yield
    if update.rowcount != len(purchase_ids):
        raise Refused("the purchase was not updated")


def rows(statement: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the result of a statement, transferred in binary form."""
    with plain_cursor() as cursor:
        return cursor.execute(statement, parameters, binary=True).fetchall()
