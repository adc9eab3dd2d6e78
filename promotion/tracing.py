"""Spans of the expiry: cycle, and in it one item per purchase, and in it the creation of its event's message."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from opentelemetry import trace
from opentelemetry.trace import StatusCode

from outbox.tracing import creating
from pinpromo import failures
from promotion.events import TOPIC
from promotion.models import PromotionPurchase

tracer = trace.get_tracer("promotion")

_NOTHING = nullcontext()

ItemSpan = Callable[[PromotionPurchase], AbstractContextManager[str | None]]


@contextmanager
def cycle_span(run_id: uuid.UUID) -> Iterator[None]:
    """Make the span of one cycle; an error of the infrastructure stands on it without values."""
    with tracer.start_as_current_span(
        "expire promotions", record_exception=False, set_status_on_exception=False
    ) as span:
        span.set_attribute("promotion.run_id", str(run_id))
        try:
            yield
        except Exception as error:
            span.set_status(StatusCode.ERROR, failures.describe(error))
            raise


def item_span(run_id: uuid.UUID) -> ItemSpan:
    """Return what makes the spans of one purchase, and yields the `traceparent` for its event.

    To be called once per batch: without a recorded cycle it returns something that costs nothing.
    """
    if not trace.get_current_span().is_recording():
        return lambda _purchase: _NOTHING
    return lambda purchase: _expiring(purchase, str(run_id))


@contextmanager
def _expiring(purchase: PromotionPurchase, run_id: str) -> Iterator[str | None]:
    with tracer.start_as_current_span(
        "expire promotion", record_exception=False, set_status_on_exception=False
    ) as span:
        span.set_attributes({"promotion.purchase_id": str(purchase.pk), "promotion.tenant_id": str(purchase.tenant_id)})
        try:
            with creating(TOPIC, key=str(purchase.pk), correlation_id=run_id) as traceparent:
                yield traceparent
        except Exception as error:
            span.set_status(StatusCode.ERROR, failures.describe(error))
            raise


def item_refused(purchase_id: uuid.UUID, reason: str) -> None:
    """Note on the cycle's span that a purchase could not be expired."""
    trace.get_current_span().add_event(
        "item_failed", {"promotion.purchase_id": str(purchase_id), "promotion.reason": reason}
    )
