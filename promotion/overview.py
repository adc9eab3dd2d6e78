"""What the operations page shows: a few bounded queries, and nothing about HTML."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Max, Min, Sum
from django.db.models.functions import TruncHour

from outbox.models import Outbox
from promotion.models import ExpirationFailure, ExpirationRun, PromotionPurchase

HOURS = 24
INSTANCES, CYCLES, STUCK = 8, 8, 8  # rows shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """How many wait, and since when the oldest does."""

    count: int
    oldest: datetime | None


def due(now: datetime) -> Backlog:
    """Return the purchases whose time is over."""
    found = PromotionPurchase.objects.due(now).aggregate(count=Count("*"), oldest=Min("ends_at"))
    return Backlog(**found)


def stuck(now: datetime) -> tuple[int, list[ExpirationFailure]]:
    """Return how many due purchases are stuck, and those stuck for longest."""
    found = ExpirationFailure.objects.filter(purchase__in=PromotionPurchase.objects.due(now))
    return found.count(), list(found.order_by("first_failed_at", "pk")[:STUCK])


def cycles(now: datetime) -> list[ExpirationRun]:
    """Return the last cycles of all instances, newest first."""
    return list(ExpirationRun.objects.filter(finished_at__lte=now).order_by("-finished_at")[:CYCLES])


def instances(now: datetime) -> list[Any]:
    """Return what each instance did in the last hour, the latest active first."""
    found = ExpirationRun.objects.filter(finished_at__gt=now - timedelta(hours=1)).values("instance")
    summed = found.annotate(
        cycles=Count("*"), expired=Sum("expired"), failed=Max("failed"), slowest=Max("duration_ms"),
        last=Max("finished_at"),
    )  # fmt: skip
    return list(summed.order_by("-last")[:INSTANCES])


def topics() -> list[dict[str, Any]]:
    """Return what waits in the outbox, by topic, and what has been parked; a topic without messages is 0."""
    pending = Outbox.objects.pending().values("topic").annotate(count=Count("*"), oldest=Min("created_at"))
    parked = dict(Outbox.objects.parked().values_list("topic").annotate(count=Count("*")))
    waiting = {row["topic"]: row for row in pending}
    return [
        {"topic": topic, "count": 0, "oldest": None, "parked": parked.get(topic, 0), **waiting.get(topic, {})}
        for topic in sorted({*settings.OUTBOX_TOPICS, *waiting, *parked})
    ]


def ending(now: datetime) -> list[int]:
    """Return how many active purchases end in each of the coming hours, the current one first."""
    start = _hour(now)
    found = PromotionPurchase.objects.filter(
        status=PromotionPurchase.Status.ACTIVE, ends_at__gt=now, ends_at__lt=start + timedelta(hours=HOURS)
    )
    counts = dict(found.values_list(TruncHour("ends_at")).annotate(count=Count("*")).order_by())
    return [counts.get(start + timedelta(hours=hour), 0) for hour in range(HOURS)]


def expired(now: datetime) -> dict[str, list[float]]:
    """Return the cycles' results in each of the past hours, the current one last."""
    start = _hour(now) - timedelta(hours=HOURS - 1)
    found = ExpirationRun.objects.filter(finished_at__gte=start).values(hour=TruncHour("finished_at"))
    summed = found.annotate(count=Sum("expired"), late=Max("lateness_seconds"), worst=Max("failed")).order_by()
    rows: Mapping[datetime, Mapping[str, Any]] = {row["hour"]: row for row in summed}
    hours = [rows.get(start + timedelta(hours=hour), {}) for hour in range(HOURS)]
    return {name: [row.get(name, 0) for row in hours] for name in ("count", "late", "worst")}


def _hour(now: datetime) -> datetime:
    return now.replace(minute=0, second=0, microsecond=0)
