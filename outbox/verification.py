"""Compares the outbox with the topic: is everything there that counts as published, and nothing else?

Both are read side by side in the order of the topic, so memory is bounded whatever the range: a page of messages, and
the places that no message is known for yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby, islice
from typing import Any, NamedTuple

import psycopg
from django.db import connection, transaction

from outbox.comparison import Comparison
from outbox.models import Outbox, OutboxQuerySet
from outbox.reading import Read, Reader
from pinpromo.deadline import deadline

PAGE = 500
QUERY_SECONDS = 60.0  # for a look at the outbox, of millions of rows if need be; a silent one would last for ever
UNCLAIMED = 10_000  # places in the topic that are looked up together, when no message near by turns out to be theirs

_RANGE = """
topic = %(topic)s AND published_at IS NOT NULL AND published_offset >= 0
AND (%(since)s::timestamptz IS NULL OR published_at >= %(since)s)
AND (%(until)s::timestamptz IS NULL OR published_at < %(until)s)
"""
_PLACES = f"""
SELECT published_partition, published_offset, id FROM promotion.outbox
WHERE {_RANGE} ORDER BY published_partition, published_offset, id
"""  # noqa: S608 - constants only
_SPANS = f"""
SELECT published_partition, min(published_offset), max(published_offset) FROM promotion.outbox
WHERE {_RANGE} GROUP BY published_partition
"""  # noqa: S608
# The order of a key is the order of its ids; whoever requeues a message gives up its place.
_OUT_OF_ORDER = f"""
SELECT id FROM (
    SELECT id, max(id) OVER (PARTITION BY published_partition, key ORDER BY published_offset) AS newest
    FROM promotion.outbox WHERE {_RANGE} AND requeued_at IS NULL
) AS message WHERE id < newest ORDER BY id
"""  # noqa: S608


class Expected(NamedTuple):
    """A message that counts as published, and where it should be."""

    partition: int
    offset: int
    id: int
    digest: bytes


def verify(reader: Reader, topic: str, *, since: datetime | None, until: datetime | None) -> Comparison:
    """Compare the messages published to `topic` from `since` to before `until` with the topic itself.

    Raises BrokerUnavailable, or Django's database errors, also when one look takes longer than QUERY_SECONDS.
    """
    comparison = Comparison(topic)
    chosen = {"topic": topic, "since": since, "until": until}
    with transaction.atomic():
        _execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")  # one view, whatever is pruned meanwhile
        spans = {partition: (first, last) for partition, first, last in _rows(_SPANS, chosen)}
        for partition, expected in groupby(_expected(chosen), key=lambda message: message.partition):
            _compare(reader, partition, expected, spans[partition], comparison)
        for (message_id,) in _rows(_OUT_OF_ORDER, chosen):
            comparison.out_of_order.add(message_id)
    return comparison


def _compare(
    reader: Reader, partition: int, expected: Iterator[Expected], span: tuple[int, int], comparison: Comparison
) -> None:
    """Walk along one partition and the messages that should be in it."""
    kept_from = reader.first_offset(partition)
    first, last = max(span[0], kept_from), span[1]
    reads = reader.read(partition, first, last) if first <= last else iter(())
    unclaimed = _Unclaimed(comparison)
    for message, read in _side_by_side(expected, reads):
        comparison.published += message is not None
        if message is None:
            if read:
                unclaimed.add(read)
        elif message.offset < kept_from:
            comparison.expired += 1
        elif read is None:
            comparison.missing.add(message.id)
        elif message.digest != _digest(read.key, read.value, read.headers):
            comparison.differing.add(message.id)
        else:
            comparison.found += 1
            unclaimed.claim(message.digest)
    unclaimed.settle()


def _side_by_side(expected: Iterator[Expected], reads: Iterator[Read]) -> Iterator[tuple[Expected | None, Read | None]]:
    """Yield what stands at each place, by both accounts."""
    message = next(expected, None)
    for read in reads:
        while message and message.offset < read.offset:
            yield message, None
            message = next(expected, None)
        if message and message.offset == read.offset:
            yield message, read
            message = next(expected, None)
        else:
            yield None, read
    while message:
        yield message, None
        message = next(expected, None)


class _Unclaimed:
    """Places in the topic where no message is expected: repetitions of a recorded one, or foreign."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._reads: dict[bytes, list[tuple[bytes, str]]] = {}  # by digest: keys and places
        self._count = 0

    def add(self, read: Read) -> None:
        digest = _digest(read.key, read.value, read.headers)
        self._reads.setdefault(digest, []).append((read.key, f"{read.partition}:{read.offset}"))
        self._count += 1
        if self._count >= UNCLAIMED:
            self.settle()

    def claim(self, digest: bytes) -> None:
        """The message stands at a later place: what was seen of it before are repetitions."""
        repetitions = self._reads.pop(digest, [])
        self._count -= len(repetitions)
        self._comparison.duplicates += len(repetitions)

    def settle(self) -> None:
        """Look the others up in the whole outbox: their place may be an earlier one, or not be marked yet."""
        keys = {key.decode(errors="replace").replace("\0", "") for reads in self._reads.values() for key, _ in reads}
        if keys:
            for _, digest in _digests(Outbox.objects.filter(topic=self._comparison.topic, key__in=keys)):
                self.claim(digest)
        for reads in self._reads.values():
            for _, place in reads:
                self._comparison.foreign.add(place)
        self._reads, self._count = {}, 0


def _expected(chosen: Mapping[str, Any]) -> Iterator[Expected]:
    """Yield the messages in the order of the topic, their contents page by page."""
    with connection.wrap_database_errors, psycopg.ServerCursor(connection.connection, "outbox_places") as places:
        places.itersize = PAGE
        with deadline(QUERY_SECONDS):
            walk = iter(places.execute(_PLACES, chosen))
        while page := _page(walk):
            digests = dict(_digests(Outbox.objects.filter(pk__in=[message_id for _, _, message_id in page])))
            for partition, offset, message_id in page:
                yield Expected(partition, offset, message_id, digests[message_id])


def _page(walk: Iterator[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    with deadline(QUERY_SECONDS):
        return list(islice(walk, PAGE))


def _digests(rows: OutboxQuerySet) -> Iterator[tuple[int, bytes]]:
    with deadline(QUERY_SECONDS):
        contents = list(rows.values_list("pk", "key", "payload", "headers"))
    for message_id, key, payload, headers in contents:
        texts = headers if isinstance(headers, dict) else {}  # whatever plain SQL has written
        values = {name: str(value).encode() for name, value in texts.items()}
        yield message_id, _digest(key.encode(), payload.encode(), values)


def _digest(key: bytes, value: bytes, headers: Mapping[str, bytes]) -> bytes:
    digest = hashlib.sha256()
    for part in [key, value, *(part for name in sorted(headers) for part in (name.encode(), headers[name]))]:
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.digest()


def _execute(statement: str) -> None:
    with deadline(QUERY_SECONDS), connection.cursor() as cursor:
        cursor.execute(statement)


def _rows(statement: str, chosen: Mapping[str, Any]) -> list[tuple[int, ...]]:
    with deadline(QUERY_SECONDS), connection.cursor() as cursor:
        cursor.execute(statement, chosen)
        rows: list[tuple[int, ...]] = cursor.fetchall()
        return rows
