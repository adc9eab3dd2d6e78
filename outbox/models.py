"""The outbox: messages recorded with a change, published after its commit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Self

from django.contrib.postgres.functions import RandomUUID
from django.db import connection, models
from django.db.models import Exists, F, Func, OuterRef, Q, Value
from django.db.models.functions import Mod, Now

from outbox.outcomes import Acknowledgement

LANES = 64
CHANNEL = "promotion_outbox"  # of the notification that wakes the relay

PENDING = Q(published_at__isnull=True, parked_at__isnull=True)

_MARK_PUBLISHED = """
UPDATE promotion.outbox AS message
SET published_at = clock_timestamp(), published_partition = acknowledged.partition,
    published_offset = acknowledged.position, next_attempt_at = NULL, last_error = ''
FROM unnest(%s::bigint[], %s::integer[], %s::bigint[]) AS acknowledged (id, partition, position)
WHERE message.id = acknowledged.id
RETURNING message.topic, extract(epoch FROM clock_timestamp() - message.created_at)::double precision
"""


def _lane_of(key: str) -> Mod:
    """The first byte of the key's MD5, modulo the number of lanes: the same on every version of PostgreSQL."""
    digest = Func(F(key), function="md5", output_field=models.TextField())
    octets = Func(digest, Value("hex", models.TextField()), function="decode", output_field=models.BinaryField())
    return Mod(Func(octets, 0, function="get_byte", output_field=models.IntegerField()), LANES)


class OutboxQuerySet(models.QuerySet["Outbox"]):
    def pending(self) -> Self:
        """Messages that still have to be published."""
        return self.filter(PENDING)

    def published(self) -> Self:
        """Messages that the broker has acknowledged."""
        return self.filter(published_at__isnull=False)

    def parked(self) -> Self:
        """Messages that were given up and wait for an operator, who requeues or skips them."""
        return self.filter(parked_at__isnull=False, skipped_at__isnull=True)

    def skipped(self) -> Self:
        """Messages that an operator has given up for good; they stay parked."""
        return self.filter(parked_at__isnull=False, skipped_at__isnull=False)  # by the index of the parked

    def publishable(self, *, at: datetime) -> Self:
        """Pending messages of which neither they nor an earlier pending one of their key waits at `at`."""
        waiting = Outbox.objects.pending().filter(key=OuterRef("key"), id__lte=OuterRef("id"), next_attempt_at__gt=at)
        return self.pending().filter(~Exists(waiting))

    def lock_batch(self) -> list[Outbox]:
        """Lock and return the messages in id order, passing over those that somebody else holds locked."""
        return list(self.order_by("id").select_for_update(skip_locked=True))

    def mark_published(self, acknowledged: Mapping[int, Acknowledgement]) -> list[tuple[str, float]]:
        """Mark what the broker has acknowledged; return each message's topic and its age in seconds."""
        if not acknowledged:
            return []
        with connection.cursor() as cursor:
            cursor.execute(
                _MARK_PUBLISHED,
                [
                    list(acknowledged),
                    [acknowledgement.partition for acknowledgement in acknowledged.values()],
                    [acknowledgement.offset for acknowledgement in acknowledged.values()],
                ],
            )
            rows: list[tuple[str, float]] = cursor.fetchall()
            return rows


class Outbox(models.Model):
    """One message: what goes to which topic under which key, and what became of it."""

    id = models.BigAutoField(primary_key=True)
    event_id = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID(), unique=True)
    event_type = models.TextField()
    aggregate_id = models.UUIDField()
    topic = models.TextField()
    key = models.TextField()
    payload = models.TextField(help_text="The exact value of the Kafka message.")
    headers = models.JSONField(default=dict, db_default=Value({}, output_field=models.JSONField()))
    created_at = models.DateTimeField(db_default=Now())
    attempts = models.IntegerField(default=0, db_default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(default="", db_default="", blank=True)
    published_at = models.DateTimeField(null=True, blank=True)
    published_partition = models.IntegerField(null=True, blank=True)
    published_offset = models.BigIntegerField(null=True, blank=True)
    parked_at = models.DateTimeField(null=True, blank=True)
    skipped_at = models.DateTimeField(null=True, blank=True)
    requeued_at = models.DateTimeField(null=True, blank=True)
    lane = models.GeneratedField(expression=_lane_of("key"), output_field=models.SmallIntegerField(), db_persist=True)

    objects = OutboxQuerySet.as_manager()

    class Meta:
        db_table = '"promotion"."outbox"'
        verbose_name = "message"
        permissions = [
            ("requeue_outbox", "Can requeue a message"),
            ("skip_outbox", "Can skip a message for good"),
        ]
        indexes = [
            models.Index(fields=["lane", "id"], name="outbox_pending", condition=PENDING),
            # For the gauges: counting a million pending messages must not read their payloads.
            models.Index(fields=["topic", "created_at"], name="outbox_pending_by_topic", condition=PENDING),
            models.Index(
                fields=["key", "id"],
                name="outbox_waiting",
                condition=PENDING & Q(next_attempt_at__isnull=False),
            ),
            models.Index(
                fields=["published_at", "id"],
                name="outbox_published",
                condition=Q(published_at__isnull=False),
            ),
            models.Index(
                fields=["parked_at", "id"],
                name="outbox_parked",
                condition=Q(parked_at__isnull=False),
            ),
            models.Index(fields=["aggregate_id", "id"], name="outbox_aggregate"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.event_id}"


class OutboxLane(models.Model):
    """A share of the keys. The relay that holds a lane's row lock publishes its messages, alone and in order."""

    lane = models.SmallIntegerField(primary_key=True)

    class Meta:
        db_table = '"promotion"."outbox_lanes"'

    def __str__(self) -> str:
        return str(self.lane)
