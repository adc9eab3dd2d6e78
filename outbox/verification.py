"""Compares the outbox with the topic: is everything there that counts as published, and nothing else?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import NamedTuple

from outbox.models import Outbox, OutboxQuerySet
from outbox.reading import Read, Reader

PAGE = 1_000
LISTED = 100  # ids or places that are named for each kind of difference


class Place(NamedTuple):
    partition: int
    offset: int


class Expected(NamedTuple):
    id: int
    digest: bytes


@dataclass(slots=True)
class Comparison:
    """What was compared, and every difference: message ids, or `partition:offset` where there is no id."""

    topic: str
    published: int = 0
    found: int = 0
    duplicates: int = 0
    expired: int = 0  # older than what the topic keeps
    missing: list[int] = field(default_factory=list)
    differing: list[int] = field(default_factory=list)
    out_of_order: list[int] = field(default_factory=list)  # a requeued message shows here too
    foreign: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.missing or self.differing or self.out_of_order or self.foreign)

    def as_dict(self) -> dict[str, object]:
        """The public form: of each kind of difference the first ones."""
        return {key: value[:LISTED] if isinstance(value, list) else value for key, value in asdict(self).items()}


def verify(reader: Reader, topic: str, *, since: datetime | None, until: datetime | None) -> Comparison:
    """Compare the messages published to `topic` from `since` to before `until` with the topic itself.

    Raises BrokerUnavailable, or Django's database errors.
    """
    comparison = Comparison(topic)
    rows = Outbox.objects.published().filter(topic=topic, published_offset__gte=0)
    if since:
        rows = rows.filter(published_at__gte=since)
    if until:
        rows = rows.filter(published_at__lt=until)
    expected = dict(_expected(rows))
    comparison.published = len(expected)
    ids = {row.digest: row.id for row in sorted(expected.values(), reverse=True)}
    newest: dict[bytes, int] = {}
    for partition in sorted({place.partition for place in expected}):
        offsets = [place.offset for place in expected if place.partition == partition]
        kept_from = reader.first_offset(partition)
        for place in [place for place in expected if place.partition == partition and place.offset < kept_from]:
            del expected[place]
            comparison.expired += 1
        for read in reader.read(partition, max(kept_from, min(offsets)), max(offsets)):
            _compare(read, expected.pop(Place(partition, read.offset), None), ids, newest, comparison)
    comparison.missing = sorted(row.id for row in expected.values())
    return comparison


def _compare(
    read: Read, row: Expected | None, ids: Mapping[bytes, int], newest: dict[bytes, int], comparison: Comparison
) -> None:
    digest = _digest(read.key, read.value, read.headers)
    message_id = row.id if row else ids.get(digest) or _recorded(read)
    if message_id is None:
        comparison.foreign.append(f"{read.partition}:{read.offset}")
        return
    if row is None:
        comparison.duplicates += 1  # of a message that was acknowledged elsewhere: a repetition
    elif row.digest != digest:
        comparison.differing.append(row.id)
    else:
        comparison.found += 1
        if message_id < newest.get(read.key, 0):
            comparison.out_of_order.append(message_id)
    newest[read.key] = max(message_id, newest.get(read.key, 0)) if row else newest.get(read.key, 0)


def _recorded(read: Read) -> int | None:
    """Look for the message outside the range that is compared."""
    rows = Outbox.objects.filter(key=read.key.decode(errors="replace"), payload=read.value.decode(errors="replace"))
    return rows.values_list("pk", flat=True).first()


def _expected(rows: OutboxQuerySet) -> Iterator[tuple[Place, Expected]]:
    last = 0
    while page := list(rows.filter(pk__gt=last).order_by("pk")[:PAGE]):
        for row in page:
            headers = {name: str(value).encode() for name, value in row.headers.items()}
            place = Place(row.published_partition or 0, row.published_offset or 0)
            yield place, Expected(row.pk, _digest(row.key.encode(), row.payload.encode(), headers))
        last = page[-1].pk


def _digest(key: bytes, value: bytes, headers: Mapping[str, bytes]) -> bytes:
    digest = hashlib.sha256()
    for part in [key, value, *(part for name in sorted(headers) for part in (name.encode(), headers[name]))]:
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.digest()
