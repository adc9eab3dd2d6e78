"""`/metrics` of the web process: bounded, and honest when the database fails."""

import contextlib
import time

import psycopg
import pytest
from django.db import connection

from tests.proxy import Proxy

pytestmark = pytest.mark.django_db(transaction=True)

SCRAPE_TIMEOUT = 10  # seconds, Prometheus' own


def scrape(client) -> dict[str, str]:
    response = client.get("/metrics", secure=True)
    assert response.status_code == 200
    lines = [line for line in response.text.splitlines() if not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines)


@contextlib.contextmanager
def database_at(host: str, port: int):
    """Send this thread's connection to another address."""
    settings = connection.settings_dict
    before = {"HOST": settings["HOST"], "PORT": settings["PORT"]}
    connection.close()
    settings.update(HOST=host, PORT=port)
    try:
        yield
    finally:
        connection.close()
        settings.update(before)


def assert_states_absent(metrics: dict[str, str]) -> None:
    assert metrics["promotion_expire_collector_success"] == "0.0"
    assert metrics["outbox_collector_success"] == "0.0"
    assert "promotion_expire_backlog" not in metrics
    assert not any(name.startswith("outbox_pending_messages") for name in metrics)


def test_states_stand_beside_the_process_own_metrics(client):
    metrics = scrape(client)

    assert metrics["promotion_expire_backlog"] == "0.0"
    assert metrics["promotion_expire_collector_success"] == "1.0"
    assert metrics["outbox_collector_success"] == "1.0"
    assert "process_cpu_seconds_total" in metrics


def test_database_that_refuses_connections_leaves_no_samples(client):
    with database_at("127.0.0.1", 1):
        assert_states_absent(scrape(client))
    assert scrape(client)["promotion_expire_backlog"] == "0.0"


def test_hung_database_does_not_hang_the_scrape(client):
    settings = connection.settings_dict
    with Proxy(settings["HOST"], int(settings["PORT"])) as proxy, database_at("127.0.0.1", proxy.port):
        assert scrape(client)["promotion_expire_collector_success"] == "1.0"
        proxy.freeze()
        started = time.monotonic()
        assert_states_absent(scrape(client))
        assert time.monotonic() - started < SCRAPE_TIMEOUT


def test_part_that_cannot_be_read_does_not_take_the_other_along(client):
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
        other.execute("LOCK TABLE promotion.promotion_purchases")
        metrics = scrape(client)

    assert metrics["promotion_expire_collector_success"] == "0.0"
    assert "promotion_expire_backlog" not in metrics
    assert metrics["outbox_collector_success"] == "1.0"
    assert metrics['outbox_pending_messages{topic="pin.promotion.purchase-changed.v1"}'] == "0.0"


def test_missing_table_is_flagged_like_an_outage(client):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE promotion.outbox RENAME TO outbox_gone")
    try:
        metrics = scrape(client)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE promotion.outbox_gone RENAME TO outbox")

    assert metrics["outbox_collector_success"] == "0.0"
    assert metrics["promotion_expire_collector_success"] == "1.0"
