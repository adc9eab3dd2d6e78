"""Which purchases a batch takes, their targets, and the change itself: the statements of the expiry cycle.

The claim is Django's `select_for_update(skip_locked=True)`. Its rows are read in binary form, and the statements
beside it are written out, because the ORM costs 10 ms of Python more for 200 purchases (docs/performance.md).
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Self

from django.db.models import Q

from pinpromo.database import plain_cursor
from promotion.events import Target
from promotion.models import PromotionPurchase

_FIELDS = [field.attname for field in PromotionPurchase._meta.concrete_fields]  # noqa: SLF001 - Django documents it
_LAST_ID = uuid.UUID(int=2**128 - 1)
_COUNT = """
SELECT count(*) FROM promotion.promotion_purchases
WHERE status = 'Active' AND (ends_at, id) > (%s, %s) AND (ends_at, id) <= (%s, %s)
    AND id <> ALL(%b) AND id NOT IN (SELECT purchase_id FROM promotion.expiration_failures)
"""
_TARGETS = """
SELECT purchase_id, target_type, target_id FROM promotion.promotion_purchase_targets
WHERE purchase_id = ANY(%(ids)b) ORDER BY id
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
        return Q(ends_at__gte=self.ends_at) & (Q(ends_at__gt=self.ends_at) | Q(id__gt=self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The purchases due `at` an instant that a batch may take: those behind `after` that are not stuck, or `among`."""

    at: datetime
    after: Place
    among: list[uuid.UUID] | None = None

    def lock(self, limit: int) -> list[PromotionPurchase]:
        """Lock and return the `limit` oldest, passing over rows that somebody else holds locked."""
        purchases = PromotionPurchase.objects.due(self.at).filter(self.after.behind)
        purchases = purchases.not_stuck() if self.among is None else purchases.filter(pk__in=self.among)
        claim = purchases.oldest_first().select_for_update(skip_locked=True)[:limit]
        locked = rows(*claim.query.sql_with_params())
        return [PromotionPurchase.from_db(claim.db, _FIELDS, row) for row in locked]

    def count_besides(self, taken: Sequence[PromotionPurchase], *, up_to: PromotionPurchase | None) -> int:
        """Count those not `taken` that stand before `up_to`, or all of them, if it is None. The stuck are not counted.

        The taken are left out by name: another worker may have found one of them stuck since it was locked here.
        """
        last = Place.of(up_to) if up_to else Place(self.at, _LAST_ID)
        ((count,),) = rows(_COUNT, [*self.after, *last, [purchase.pk for purchase in taken]])
        return int(count)


def targets_of(purchases: Sequence[PromotionPurchase]) -> Mapping[uuid.UUID, Sequence[Target]]:
    """Return the targets by purchase id, in the order in which they were added; none for an unknown id."""
    targets: dict[uuid.UUID, list[Target]] = defaultdict(list)
    if purchases:
        for purchase_id, kind, target_id in rows(_TARGETS, {"ids": [purchase.pk for purchase in purchases]}):
            targets[purchase_id].append(Target(kind, target_id))
    return targets


def write_expired(purchase_ids: Sequence[uuid.UUID], *, at: datetime) -> int:
    """Write the expiry, at `at`, of those that are still Active; return how many they were."""
    with plain_cursor() as cursor:
        return cursor.execute(_EXPIRE, {"at": at, "ids": purchase_ids}).rowcount


def rows(statement: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the result of a statement, transferred in binary form."""
    with plain_cursor() as cursor:
        return cursor.execute(statement, parameters, binary=True).fetchall()
