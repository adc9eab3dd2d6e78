"""Spans of messages, in the words of OpenTelemetry's semantic conventions for messaging (still in development).

https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.util.types import AttributeValue

from outbox.models import Outbox
from outbox.outcomes import Outcome
from pinpromo.tracing import span_context, traceparent

tracer = trace.get_tracer("outbox")

KEY = "messaging.kafka.message.key"
CONVERSATION = "messaging.message.conversation_id"
MESSAGE = "messaging.message.id"
COUNT = "messaging.batch.message_count"


@contextmanager
def creating(topic: str, *, key: str, correlation_id: str) -> Iterator[str | None]:
    """Make the span `create <topic>` of one message. Yields the `traceparent` to store with it, if it is recorded."""
    with tracer.start_as_current_span(
        f"create {topic}", kind=SpanKind.PRODUCER, record_exception=False, set_status_on_exception=False
    ) as span:
        if span.is_recording():
            span.set_attributes({**_operation("create", topic), KEY: key, CONVERSATION: correlation_id})
        yield traceparent(span)


def sent(messages: Sequence[Outbox], outcome: Outcome, *, began: int) -> None:
    """Make a span `send <topic>` for each topic of a batch that was published from `began` (ns since 1970) to now.

    It is linked to the spans that created the messages.
    """
    for topic in sorted({message.topic for message in messages}):
        span = tracer.start_span(f"send {topic}", kind=SpanKind.CLIENT, start_time=began)
        if span.is_recording():
            _tell(span, topic, [message for message in messages if message.topic == topic], outcome)
        span.end()


def _tell(span: Span, topic: str, messages: Sequence[Outbox], outcome: Outcome) -> None:
    span.set_attributes({**_operation("send", topic), COUNT: len(messages)})
    for message in messages:
        headers = message.headers if isinstance(message.headers, dict) else {}  # whatever plain SQL has written
        origin = span_context(str(headers.get("traceparent", "")))
        correlation_id = str(headers.get("ce_correlationid", ""))
        if origin.is_valid:
            span.add_link(origin, {MESSAGE: str(message.event_id), KEY: message.key, CONVERSATION: correlation_id})
    failures = {outcome.refused[message.pk].failure.value for message in messages if message.pk in outcome.refused}
    failures |= {"unknown"} if outcome.outage else set()
    if failures:
        span.set_attribute("error.type", ",".join(sorted(failures)))
        span.set_status(StatusCode.ERROR, outcome.outage or None)


def _operation(name: str, topic: str) -> dict[str, AttributeValue]:
    return {
        "messaging.system": "kafka",
        "messaging.operation.name": name,
        "messaging.operation.type": name,
        "messaging.destination.name": topic,
    }
