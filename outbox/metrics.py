"""The relay's own metrics. Only the relay imports this: elsewhere they would be exported as zeros."""

from django.conf import settings
from prometheus_client import Counter, Histogram

from outbox.outcomes import Failure
from outbox.relay import CycleResult

PUBLISHED = Counter(
    "outbox_published_total",
    "Messages that the broker has acknowledged. Worry when it stands still while outbox_pending_messages grows.",
    ["topic"],
)
ERRORS = Counter(
    "outbox_publish_errors_total",
    "Messages not acknowledged, by reason: rejected, topic, denied, leaderless, unknown. Worry when it keeps growing.",
    ["topic", "reason"],
)
DELAY = Histogram(
    "outbox_publish_delay_seconds",
    "From recorded to acknowledged, in seconds. Worry above the expiry interval.",
    ["topic"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600),
)


def _prepare(topic: str) -> None:
    """Make the topic's series exist, at 0: a rate needs a value before the first increase."""
    PUBLISHED.labels(topic)
    DELAY.labels(topic)
    for reason in Failure:
        ERRORS.labels(topic, reason.value)


for _topic in settings.OUTBOX_TOPICS:
    _prepare(_topic)


def count(result: CycleResult) -> None:
    """Add one cycle."""
    for topic in result.topics:
        _prepare(topic)
    for topic, seconds in result.delays:
        PUBLISHED.labels(topic).inc()
        DELAY.labels(topic).observe(seconds)
    for topic, failure in result.failures:
        ERRORS.labels(topic, failure.value).inc()
