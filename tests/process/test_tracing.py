"""Traces of real processes, exported to a real OTLP receiver; and one that does not answer."""

import contextlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pinpromo.tracing import FLUSH_SECONDS
from promotion.events import TOPIC
from tests.factories import PurchaseFactory
from tests.programs import manage
from tests.readings import messages

pytestmark = pytest.mark.django_db(transaction=True)


@contextlib.contextmanager
def collector():
    """Receive spans. Yields its address and a dictionary that fills with (service, span) by the span's name."""
    received = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                (service,) = (a.value.string_value for a in resource.resource.attributes if a.key == "service.name")
                for scope in resource.scope_spans:
                    received.update({span.name: (service, span) for span in scope.spans})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()


def test_spans_of_worker_and_relay_reach_the_collector_and_are_linked():
    purchase = PurchaseFactory()
    with collector() as (address, received):
        expired = manage("expire_promotions", OTEL_EXPORTER_OTLP_ENDPOINT=address)
        relayed = manage("relay_outbox", OTEL_EXPORTER_OTLP_ENDPOINT=address)
    assert (expired.returncode, relayed.returncode) == (0, 0), expired.stderr + relayed.stderr

    (service, whole), (_, item), (_, create) = (
        received[name] for name in ("expire promotions", "expire promotion", f"create {TOPIC}")
    )
    assert service == "pinpromo-expire-promotions"
    assert item.parent_span_id == whole.span_id
    assert create.parent_span_id == item.span_id
    service, send = received[f"send {TOPIC}"]
    assert service == "pinpromo-relay-outbox"
    assert [link.span_id for link in send.links] == [create.span_id]
    traceparent = messages(purchase)[0].headers["traceparent"]
    assert traceparent.startswith(f"00-{create.trace_id.hex()}-{create.span_id.hex()}-")


def test_collector_that_does_not_answer_delays_the_exit_by_a_bounded_time():
    def seconds(**environment):
        started = time.monotonic()
        finished = manage("expire_promotions", **environment)
        assert finished.returncode == 0, finished.stderr
        return time.monotonic() - started

    PurchaseFactory()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        delayed = seconds(OTEL_EXPORTER_OTLP_ENDPOINT=address)
    # Unbounded it would be 10 seconds.
    assert delayed - seconds() < FLUSH_SECONDS + 4


def test_collector_that_refuses_is_no_reason_to_fail_and_is_told_of_sparingly():
    PurchaseFactory.create_batch(3)
    finished = manage("expire_promotions", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")

    assert finished.returncode == 0
    assert finished.stdout.startswith("expired 3,")
    assert 0 < finished.stderr.count('"logger":"opentelemetry') <= 4
