"""The state of the outbox as gauges by topic, for the web process."""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Min
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from outbox.models import Outbox


def read(now: datetime) -> Iterator[Metric]:
    """Yield the pending and parked messages and the oldest age. Raises Django's database errors."""
    pending = GaugeMetricFamily(
        "outbox_pending_messages",
        "Messages that still have to be published. Worry above 1000.",
        labels=["topic"],
    )
    oldest = GaugeMetricFamily(
        "outbox_oldest_pending_age_seconds",
        "How long the oldest pending message has waited since it was recorded, in seconds; 0 if there is none. Worry"
        " above one interval of the expiry worker.",
        labels=["topic"],
    )
    parked = GaugeMetricFamily(
        "outbox_parked_messages",
        "Messages that were given up and wait for an operator. Worry when it is not 0.",
        labels=["topic"],
    )
    pending_by_topic = Outbox.objects.pending().values("topic").annotate(count=Count("*"), oldest=Min("created_at"))
    found = {row["topic"]: row for row in pending_by_topic}
    parked_by_topic = dict(Outbox.objects.parked().values_list("topic").annotate(count=Count("*")))
    # A topic without messages is 0, not absent: alerts rest on it.
    for topic in sorted({*settings.OUTBOX_TOPICS, *found, *parked_by_topic}):
        row = found.get(topic)
        pending.add_metric([topic], row["count"] if row else 0)
        oldest.add_metric([topic], (now - row["oldest"]).total_seconds() if row else 0.0)
        parked.add_metric([topic], parked_by_topic.get(topic, 0))
    return iter([pending, oldest, parked])
