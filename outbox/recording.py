"""The only door into the outbox for other apps: messages are recorded with the change they tell of."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson
from django.db import connection

from pinpromo.database import plain_cursor
from pinpromo.isolation import Refused

MAX_BYTES = 900_000  # under the 1,000,000 bytes that librdkafka and brokers accept, headers and framing included

_COPY = """
COPY promotion.outbox (event_id, event_type, aggregate_id, topic, key, payload, headers) FROM STDIN
"""


class NotInTransaction(RuntimeError):  # noqa: N818 - says what is wrong
    """Messages are recorded inside the transaction of the change they tell of; open one first."""


class NotRecorded(Refused):
    """The database kept fewer messages than it was given."""


class UnfitMessage(ValueError):  # noqa: N818
    """The message could never be published: too large, or not expressible as UTF-8 text without NUL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is to be published: the exact value, its key, topic and headers.

    Raises UnfitMessage if no broker would ever take it.
    """

    event_type: str
    aggregate_id: uuid.UUID
    topic: str
    key: str
    payload: str
    headers: Mapping[str, str] = field(default_factory=dict)
    event_id: uuid.UUID = field(default_factory=uuid.uuid4)

    def __post_init__(self) -> None:
        text = "".join([self.event_type, self.topic, self.key, self.payload, *self.headers, *self.headers.values()])
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise UnfitMessage("the message is not valid Unicode (a lone surrogate)") from error
        if "\0" in text:
            raise UnfitMessage("the message holds a NUL character, which PostgreSQL cannot store")
        if size > MAX_BYTES:
            raise UnfitMessage(f"the message has {size:,} bytes, more than the {MAX_BYTES:,} that fit")


def record(messages: Sequence[Message]) -> None:
    """Store `messages` in the current transaction, to be published in this order after its commit.

    Raises NotInTransaction, NotRecorded, or Django's database errors.
    """
    if not connection.in_atomic_block:
        raise NotInTransaction(NotInTransaction.__doc__)
    # Note [Past the ORM]: bulk_create escapes each payload in Python and costs 2.7 times as much.
    with plain_cursor() as cursor:
        with cursor.copy(_COPY) as copy:
            for message in messages:
                copy.write_row(_row(message))
        if cursor.rowcount != len(messages):
            raise NotRecorded(NotRecorded.__doc__)


def _row(message: Message) -> tuple[object, ...]:
    return (
        message.event_id,
        message.event_type,
        message.aggregate_id,
        message.topic,
        message.key,
        message.payload,
        orjson.dumps(dict(message.headers)).decode(),
    )
