"""Traces over OTLP, if OTEL_EXPORTER_OTLP_ENDPOINT says where to; otherwise making a span does nothing."""

import atexit
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from opentelemetry import trace
from opentelemetry.trace import Span, SpanContext, SpanKind, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pinpromo import threads

FLUSH_SECONDS = 2.0  # by how much a collector that does not answer delays the exit of a process, at most

View = Callable[..., HttpResponse]

tracer = trace.get_tracer("pinpromo")
_w3c = TraceContextTextMapPropagator()


def start(service: str) -> None:
    """Export the spans of this process from now on, under the name `service`, if there is a place to export them to.

    Raises ImproperlyConfigured when the packages for it are not installed.
    """
    if not settings.TRACES_ENDPOINT:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ImproperlyConfigured(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages that export traces are missing: "
            "pip install -r requirements/tracing.txt"
        ) from error
    resource = Resource.create({"service.name": service})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)  # its own waits for up to 30 seconds
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    atexit.register(_flush, provider.shutdown)


def _flush(shutdown: Callable[[], None]) -> None:
    threads.start("flush", shutdown).join(FLUSH_SECONDS)


def traceparent(span: Span) -> str | None:
    """Return the W3C `traceparent` that makes others children of `span`; None for a span that is not recorded."""
    carrier: dict[str, str] = {}
    if span.is_recording():
        _w3c.inject(carrier, set_span_in_context(span))
    return carrier.get("traceparent")


def span_context(traceparent: str) -> SpanContext:
    """Return what `traceparent` refers to; an invalid context if it is malformed."""
    found = trace.get_current_span(_w3c.extract({"traceparent": traceparent}))
    return found.get_span_context()


def served(route: str) -> Callable[[View], View]:
    """Decorate a view: make the span of each request, a child of the caller's if the request names one."""

    def decorate(view: View) -> View:
        @wraps(view)
        def traced(request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
            with tracer.start_as_current_span(
                f"{request.method} {route}",
                context=_w3c.extract(request.headers),
                kind=SpanKind.SERVER,
                record_exception=False,
                set_status_on_exception=False,
            ) as span:
                response = view(request, *arguments, **options)
                span.set_attributes({"http.route": route, "http.response.status_code": response.status_code})
                return response

        return traced

    return decorate
