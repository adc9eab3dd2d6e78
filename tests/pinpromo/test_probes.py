"""`/healthz`, `/readyz` and the closing of `/metrics`, as machines ask for them: plain HTTP, any host name."""

import pytest
from django.db import connection

from tests.pinpromo.test_gauges import database_at

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ask(client, settings):
    settings.ALLOWED_HOSTS = ["pinpromo.example.com"]
    return lambda path, **headers: client.get(path, headers={"Host": "10.0.0.7:8000"} | headers)


def test_other_paths_are_not_served_like_this(ask):
    assert ask("/admin/").status_code == 400
    assert ask("/healthz/x").status_code == 400


def test_both_are_fine_with_a_database(ask):
    assert [ask(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]


def test_without_a_database_the_process_is_alive_and_not_ready(ask):
    with database_at("127.0.0.1", 9):
        assert [ask(path).status_code for path in ("/healthz", "/readyz")] == [200, 503]
    assert ask("/readyz").status_code == 200


def test_a_session_that_the_server_ended_is_replaced(ask):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    other.close()
    assert [ask("/readyz").status_code for _ in range(2)][-1] == 200


def test_metrics_are_open_by_default(ask):
    assert ask("/metrics").status_code == 200


def test_metrics_are_closed_to_who_lacks_the_token(ask, settings):
    settings.METRICS_TOKEN = "s3cret"
    for header in ({}, {"Authorization": "Bearer S3cret"}, {"Authorization": "s3cret"}, {"Authorization": "Bearer é"}):
        response = ask("/metrics", **header)
        assert (response.status_code, b"promotion" in response.content) == (401, False)
    assert b"promotion_expire_backlog" in ask("/metrics", Authorization="Bearer s3cret").content
