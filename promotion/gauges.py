"""The state of the purchases as gauges, for the web process."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Min
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from promotion.models import ExpirationFailure, PromotionPurchase


def read(now: datetime) -> Iterator[Metric]:
    """Yield the backlog, the oldest ages and the number of stuck purchases. Raises Django's database errors."""
    due = PromotionPurchase.objects.due(now)
    backlog = due.aggregate(count=Count("*"), oldest=Min("ends_at"))
    healthy = due.not_stuck().oldest_first().values_list("ends_at", flat=True).first()
    yield GaugeMetricFamily(
        "promotion_expire_backlog",
        "Active purchases whose time is over. Worry above 100 for 5 minutes.",
        value=backlog["count"],
    )
    yield GaugeMetricFamily(
        "promotion_expire_oldest_due_age_seconds",
        "How long ago the oldest of the backlog ended, stuck ones included, in seconds; 0 if there is none.",
        value=_age(backlog["oldest"], now),
    )
    yield GaugeMetricFamily(
        "promotion_expire_lateness_seconds",
        "How long ago the oldest of the backlog ended, stuck ones left out, in seconds; 0 if there is none. Worry when"
        " it is above two intervals.",
        value=_age(healthy, now),
    )
    yield GaugeMetricFamily(
        "promotion_expire_stuck_purchases",
        "Due purchases whose expiry has failed (poison). Worry when it is not 0.",
        value=due.filter(pk__in=ExpirationFailure.objects.values("purchase_id")).count(),
    )


def _age(instant: datetime | None, now: datetime) -> float:
    return (now - instant).total_seconds() if instant else 0.0
