"""Which messages a relay may publish now, and how it keeps the others' hands off them.

Note [Lanes]: a lane is a fixed share of the keys. Whoever holds a lane's row lock publishes its messages, alone and
in id order, so the order of a key holds with any number of relays, and a relay that dies frees its lanes at once.

Note [Plans]: after a quiet week the statistics say that nothing is pending, and a planner that believes them walks over
all pending messages for each of them: hours, when an outage has left a backlog. So each step asks for the order of the
one index that fits it, and sorting instead is not an option. The same goes for statistics that say the opposite.

Note [Held keys]: a message that somebody else holds locked holds back its key. The first look at a lane may find
nothing but such keys; then they are left out, and it looks again.

The messages are locked by Django's `select_for_update(skip_locked=True)`. The statements before it are written out
because they run on every wake-up: built by the ORM they cost 3 ms of Python more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from outbox.models import Outbox

LANES_PER_RELAY = 16  # of 64: several relays share the work
LOOKS = 5  # at a lane whose first keys are held by others
MAX_BYTES = 16_000_000  # of payload in one batch: memory, and what can be sent in the time

_PENDING = "published_at IS NULL AND parked_at IS NULL"
_PLANNING = "SET LOCAL enable_sort = off; SET LOCAL enable_seqscan = off; SET LOCAL jit = off;"
# The same as OutboxQuerySet.publishable. OFFSET keeps the planner from making a join of it.
_PUBLISHABLE = f"""
{_PENDING} AND NOT EXISTS (
    SELECT FROM promotion.outbox AS waiting
    WHERE waiting.key = message.key AND waiting.id <= message.id AND waiting.next_attempt_at > %(at)s
        AND waiting.published_at IS NULL AND waiting.parked_at IS NULL
    ORDER BY waiting.key, waiting.id LIMIT 1 OFFSET 0
)
"""
# Any busy lanes, not the first ones, so that none waits until the others are empty.
_LOCK_LANES = f"""
{_PLANNING}
SELECT lanes.lane FROM promotion.outbox_lanes AS lanes CROSS JOIN LATERAL (
    SELECT FROM promotion.outbox AS message WHERE message.lane = lanes.lane AND {_PUBLISHABLE}
    ORDER BY message.lane, message.id LIMIT 1
) AS busy
ORDER BY random() LIMIT %(limit)s FOR UPDATE OF lanes SKIP LOCKED
"""  # noqa: S608 - constants only
_FIRST_OF_EACH_LANE = f"""
SELECT first.* FROM unnest(%(lanes)s::smallint[]) AS lanes (lane) CROSS JOIN LATERAL (
    SELECT id, key, octet_length(payload) FROM promotion.outbox AS message
    WHERE message.lane = lanes.lane AND {_PUBLISHABLE} AND message.key <> ALL(%(held)s)
    ORDER BY message.lane, message.id LIMIT %(share)s
) AS first
ORDER BY id
"""  # noqa: S608


class Candidate(NamedTuple):
    """A message that might be claimed; its payload is read once it is known how many fit."""

    id: int
    key: str
    size: int  # bytes of the payload


def claim(limit: int, *, at: datetime) -> list[Outbox]:
    """Lock some lanes and about `limit` of their messages publishable at `at`; return these, in id order.

    Each lane gives its first ones, but for keys that somebody else holds. Must stand inside a transaction: its end is
    the end of the claim.
    """
    lanes = [lane for (lane,) in _rows(_LOCK_LANES, at=at, limit=LANES_PER_RELAY)]
    batch: list[Outbox] = []
    held: set[str] = set()
    for _ in range(LOOKS if lanes else 0):
        candidates = _candidates(lanes, limit, at=at, held=held)
        batch = _lock(candidates)
        missed = {candidate.key for candidate in candidates} - {message.key for message in batch}
        if not missed:
            break
        held |= missed
    return batch


def _candidates(lanes: Sequence[int], limit: int, *, at: datetime, held: Collection[str]) -> Sequence[Candidate]:
    share = 2 * -(-limit // len(lanes))  # some lanes have less than their share
    rows = _rows(_FIRST_OF_EACH_LANE, at=at, lanes=lanes, share=share, held=list(held))
    return _drop_excess([Candidate(*row) for row in rows[:limit]])


def _lock(candidates: Sequence[Candidate]) -> list[Outbox]:
    """Lock the candidates; leave out those behind one of their key that somebody else holds."""
    batch = Outbox.objects.pending().filter(pk__in=[candidate.id for candidate in candidates]).lock_batch()
    locked = {message.pk for message in batch}
    missed = {candidate.key: candidate.id for candidate in reversed(candidates) if candidate.id not in locked}
    return [message for message in batch if message.pk < missed.get(message.key, message.pk + 1)]


def _drop_excess(batch: Sequence[Candidate]) -> Sequence[Candidate]:
    """Leave out the last ones of a batch that is too large as a whole, but never the first."""
    total = 0
    for position, candidate in enumerate(batch):
        total += candidate.size
        if position and total > MAX_BYTES:
            return batch[:position]
    return batch


def _rows(statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        while cursor.nextset():  # the last statement's answer counts
            pass
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
