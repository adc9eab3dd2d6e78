"""Which messages a relay may publish now, and how it keeps the others' hands off them.

Note [Lanes]: a lane is a fixed share of the keys. Whoever holds a lane's row lock publishes its messages, alone and
in id order, so the order of a key holds with any number of relays, and a relay that dies frees its lanes at once.

The messages are locked by Django's `select_for_update(skip_locked=True)`. The statements before it are written out
because they run on every wake-up: built by the ORM they cost 3 ms of Python more.
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
_FIRST_OF_EACH_LANE = f"""
SELECT first.* FROM unnest(%(lanes)s::smallint[]) AS lanes (lane) CROSS JOIN LATERAL (
    SELECT id, octet_length(payload) FROM promotion.outbox AS message
    WHERE message.lane = lanes.lane AND {_PUBLISHABLE} ORDER BY id LIMIT %(share)s
) AS first
ORDER BY id
"""  # noqa: S608
_PASSED_OVER = f"""
SELECT key, min(id) FROM promotion.outbox
WHERE lane = ANY(%(lanes)s) AND {_PENDING} AND id < %(last)s AND key = ANY(%(keys)s) AND id <> ALL(%(ids)s)
GROUP BY key
"""  # noqa: S608


class Candidate(NamedTuple):
    """A message that might be claimed; its payload is read once it is known how many fit."""

    id: int
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
    candidates = [Candidate(*row) for row in _rows(_FIRST_OF_EACH_LANE, at=at, lanes=lanes, share=share)]
    fitting = [candidate.id for candidate in _drop_excess(candidates[:limit])]
    return _drop_overtaking(Outbox.objects.pending().filter(pk__in=fitting).lock_batch(), lanes)


def _drop_excess(batch: Sequence[Candidate]) -> Sequence[Candidate]:
    """Leave out the last ones of a batch that is too large as a whole, but never the first."""
    total = 0
    for position, candidate in enumerate(batch):
        total += candidate.size
        if position and total > MAX_BYTES:
            return batch[:position]
    return batch


def _drop_overtaking(batch: Sequence[Outbox], lanes: Sequence[int]) -> list[Outbox]:
    """Leave out messages with an earlier pending one of their key that was not locked: somebody else holds it."""
    if not batch:
        return []
    last = batch[-1].pk
    ids, keys = [message.pk for message in batch], list({message.key for message in batch})
    first: Mapping[str, int] = dict(_rows(_PASSED_OVER, lanes=lanes, last=last, keys=keys, ids=ids))
    return [message for message in batch if message.pk < first.get(message.key, last + 1)]


def _rows(statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
