"""Spans of a cycle: what stands on them, and how they hang together; nothing without configuration."""

import json

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from outbox import tracing as message_spans
from outbox.models import Outbox
from outbox.outcomes import Failure, Outcome, Refusal
from pinpromo import tracing as request_spans
from promotion import tracing
from promotion.events import TOPIC
from promotion.expiration import run_cycle
from tests.factories import NOW, PurchaseFactory
from tests.readings import messages
from tests.tokens import SETTINGS, token

pytestmark = pytest.mark.django_db


@pytest.fixture
def spans(monkeypatch):
    """The finished spans, as if the SDK had been configured from the start."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "tracer", provider.get_tracer("promotion"))
    monkeypatch.setattr(message_spans, "tracer", provider.get_tracer("outbox"))
    monkeypatch.setattr(request_spans, "tracer", provider.get_tracer("pinpromo"))
    yield lambda: {span.name: span for span in exporter.get_finished_spans()}
    provider.shutdown()


def cycle():
    return run_cycle(as_of=NOW, batch_size=10, budget=30)


def test_without_configuration_nothing_is_recorded_or_stored():
    PurchaseFactory()
    cycle()

    assert "traceparent" not in messages()[0].headers
    assert not trace.get_current_span().is_recording()


def test_cycle_holds_item_holds_creation_of_the_message(spans):
    purchase = PurchaseFactory()
    result = cycle()
    found = spans()
    whole, item, create = found["expire promotions"], found["expire promotion"], found[f"create {TOPIC}"]

    assert whole.parent is None
    assert whole.kind is SpanKind.INTERNAL
    assert whole.attributes == {"promotion.run_id": str(result.run_id)}
    assert item.parent.span_id == whole.context.span_id
    assert item.attributes == {
        "promotion.purchase_id": str(purchase.pk),
        "promotion.tenant_id": str(purchase.tenant_id),
    }
    assert create.parent.span_id == item.context.span_id
    assert create.kind is SpanKind.PRODUCER
    assert create.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "create",
        "messaging.operation.type": "create",
        "messaging.destination.name": TOPIC,
        "messaging.kafka.message.key": str(purchase.pk),
        "messaging.message.conversation_id": str(result.run_id),
    }
    trace_id, span_id = create.context.trace_id, create.context.span_id
    assert messages()[0].headers["traceparent"].startswith(f"00-{trace_id:032x}-{span_id:016x}-")


def test_poison_stands_on_its_span_and_on_the_cycles_without_values(spans):
    purchase = PurchaseFactory(targets=0)
    cycle()
    found = spans()

    item, whole = found["expire promotion"], found["expire promotions"]
    assert item.status.status_code is StatusCode.ERROR
    assert item.status.description == "IncompleteSnapshot: the purchase has no targets"
    (event,) = whole.events
    assert event.name == "item_failed"
    assert event.attributes["promotion.purchase_id"] == str(purchase.pk)
    assert whole.status.status_code is StatusCode.UNSET


def test_send_is_linked_to_where_its_messages_were_created(spans):
    PurchaseFactory()
    result = cycle()
    (message,) = messages()
    foreign = Outbox.objects.create(
        event_type="x",
        aggregate_id=message.aggregate_id,
        topic=TOPIC,
        key="k",
        payload="",
        headers={"traceparent": "!"},
    )
    outcome = Outcome(refused={foreign.pk: Refusal(Failure.REJECTED, "too large")})

    message_spans.sent([message, foreign], outcome, began=1)

    send, create = spans()[f"send {TOPIC}"], spans()[f"create {TOPIC}"]
    assert send.kind is SpanKind.CLIENT
    assert send.start_time == 1
    assert send.attributes["messaging.batch.message_count"] == 2
    assert send.attributes["error.type"] == "rejected"
    (link,) = send.links
    assert link.context.span_id == create.context.span_id
    assert link.context.trace_id == create.context.trace_id
    assert link.attributes["messaging.message.id"] == str(message.event_id)
    assert link.attributes["messaging.message.conversation_id"] == str(result.run_id)
    assert json.loads(message.payload)["correlationId"] == str(result.run_id)


CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(("headers", "joined"), [({"traceparent": CALLER}, True), ({"traceparent": "x"}, False)])
def test_cancellation_goes_on_with_the_callers_trace(spans, client, settings, headers, joined):
    for name, value in SETTINGS.items():
        setattr(settings, name, value)
    purchase = PurchaseFactory()
    headers |= {"Authorization": f"Bearer {token(purchase.tenant_id)}"}
    assert client.post(f"/promotions/{purchase.pk}/cancel", headers=headers, secure=True).status_code == 200

    request, create = spans()["POST /promotions/{id}/cancel"], spans()[f"create {TOPIC}"]
    assert request.kind is SpanKind.SERVER
    assert request.attributes["http.response.status_code"] == 200
    assert (format(request.context.trace_id, "032x") == CALLER.split("-")[1]) is joined
    assert create.parent.span_id == request.context.span_id
    assert (
        f"{create.context.trace_id:032x}-{create.context.span_id:016x}" in messages(purchase)[0].headers["traceparent"]
    )
