"""Which messages a relay may publish now, and how it keeps the others' hands off them.

Note [Lanes]: a lane is a fixed share of the keys. Whoever holds a lane's row lock publishes its messages, alone and
in id order, so the order of a key holds with any number of relays, and a relay that dies frees its lanes at once.

The statements are written out because they run on every wake-up: built by the ORM they cost 3 ms of Python more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from outbox.models import Outbox

LANES_PER_RELAY = 16  # of 64: several relays share the work
MAX_BYTES = 16_000_000  # of payload in one batch: memory, and what can be sent in the time

_PENDING = "published_at IS NULL AND parked_at IS NULL"
# The same as OutboxQuerySet.publishable.
_PUBLISHABLE = f"""
{_PENDING} AND NOT EXISTS (
    SELECT FROM promotion.outbox AS waiting
    WHERE waiting.key = message.key AND waiting.id <= message.id AND waiting.next_attempt_at > %(at)s
        AND waiting.published_at IS NULL AND waiting.parked_at IS NULL
)
"""
# Any busy lanes, not the first ones, so that none waits until the others are empty.
_LOCK_LANES = f"""
SELECT lanes.lane FROM promotion.outbox_lanes AS lanes CROSS JOIN LATERAL (
    SELECT FROM promotion.outbox AS message WHERE message.lane = lanes.lane AND {_PUBLISHABLE} LIMIT 1
) AS busy
ORDER BY random() LIMIT %(limit)s FOR UPDATE OF lanes SKIP LOCKED
"""  # noqa: S608 - constants only
_LOCK_MESSAGES = f"""
SELECT claimed.* FROM unnest(%(lanes)s::smallint[]) AS lanes (lane) CROSS JOIN LATERAL (
    SELECT id, key, octet_length(payload) FROM promotion.outbox AS message
    WHERE message.lane = lanes.lane AND {_PUBLISHABLE} ORDER BY id LIMIT %(share)s FOR UPDATE SKIP LOCKED
) AS claimed
ORDER BY id
"""  # noqa: S608
_PASSED_OVER = f"""
SELECT key, min(id) FROM promotion.outbox
WHERE lane = ANY(%(lanes)s) AND {_PENDING} AND id < %(last)s AND key = ANY(%(keys)s) AND id <> ALL(%(ids)s)
GROUP BY key
"""  # noqa: S608


class Claimed(NamedTuple):
    """A message that is locked; its payload is read once it is known how many fit."""

    id: int
    key: str
    size: int  # bytes of the payload


def claim(limit: int, *, at: datetime) -> list[Outbox]:
    """Lock some lanes and about `limit` of their messages publishable at `at`; return these, in id order.

    Each lane gives its first ones. Must stand inside a transaction: its end is the end of
    the claim.
    """
    lanes = [lane for (lane,) in _rows(_LOCK_LANES, at=at, limit=LANES_PER_RELAY)]
    if not lanes:
        return []
    share = 2 * -(-limit // len(lanes))  # some lanes have less than their share
    locked = [Claimed(*row) for row in _rows(_LOCK_MESSAGES, at=at, lanes=lanes, share=share)]
    chosen = _drop_overtaking(_drop_excess(locked[:limit]), lanes)
    return list(Outbox.objects.filter(pk__in=[claimed.id for claimed in chosen]).order_by("id"))


def _drop_excess(batch: Sequence[Claimed]) -> Sequence[Claimed]:
    """Leave out the last ones of a batch that is too large as a whole, but never the first."""
    total = 0
    for position, claimed in enumerate(batch):
        total += claimed.size
        if position and total > MAX_BYTES:
            return batch[:position]
    return batch


def _drop_overtaking(batch: Sequence[Claimed], lanes: Sequence[int]) -> Sequence[Claimed]:
    """Leave out messages with an earlier pending one of their key that was not claimed: somebody holds it locked."""
    if not batch:
        return []
    last = batch[-1].id
    ids, keys = [claimed.id for claimed in batch], list({claimed.key for claimed in batch})
    first: Mapping[str, int] = dict(_rows(_PASSED_OVER, lanes=lanes, last=last, keys=keys, ids=ids))
    return [claimed for claimed in batch if claimed.id < first.get(claimed.key, last + 1)]


def _rows(statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
