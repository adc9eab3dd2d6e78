"""The operators' pages while the database fails."""

import time

import pytest
from django.test import Client
from structlog.testing import capture_logs

from pinpromo import unavailable
from tests.gates import session
from tests.operators import Person

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_page_whose_query_does_not_come_back_is_given_up(monkeypatch):
    person = Person("Viewer")
    assert person.get("/admin/").status_code == 200
    monkeypatch.setattr(unavailable, "PAGE_SECONDS", 0.3)
    with session() as other, capture_logs() as logs:
        other.execute("LOCK TABLE django_session")
        began = time.monotonic()
        response = person.get("/admin/")
        assert 0.3 <= time.monotonic() - began < 30
    assert (response.status_code, response["Retry-After"], response["Cache-Control"]) == (503, "5", "no-store")
    assert b"The database cannot be reached" in response.content
    (line,) = [line for line in logs if line["event"] == "page_failed"]
    assert (line["path"], line["reason"]) == ("/admin/", "QueryCanceled: SQLSTATE 57014")
    monkeypatch.undo()
    assert person.get("/admin/").status_code == 200  # by the same thread, on a connection that works


def test_an_error_that_is_no_outage_stays_a_bug():
    person = Person("Viewer")
    person.client.raise_request_exception = False
    with session() as other:
        other.execute("ALTER TABLE django_session RENAME TO renamed")
        other.commit()
        try:
            assert person.get("/admin/").status_code == 500
        finally:
            other.execute("ALTER TABLE renamed RENAME TO django_session")
            other.commit()
    assert Client().get("/admin/login/", secure=True).status_code == 200
