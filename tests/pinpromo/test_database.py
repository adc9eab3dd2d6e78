"""Work on a connection that may fail: what is survived, what is raised, and on which connection it goes on."""

import pytest
from django.db import ProgrammingError, connection
from structlog.testing import capture_logs

from pinpromo.database import Outage, plain_cursor

pytestmark = pytest.mark.django_db(transaction=True)
READ_ONLY = "DO $$ BEGIN RAISE EXCEPTION 'a standby now' USING ERRCODE = 'read_only_sql_transaction'; END $$"


def backend():
    with plain_cursor() as cursor:
        return cursor.execute("SELECT pg_backend_pid()").fetchone()[0]


def fail(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_after_a_failure_the_next_attempt_goes_to_whatever_server_answers_then():
    """A connection that still works may lead to a standby."""
    outage, before, after = Outage(), backend(), []
    with capture_logs() as logs:
        assert outage.survive(lambda: fail(READ_ONLY)) is False
        assert outage.survive(lambda: after.append(backend())) is True
    assert after != [before]
    assert [line["event"] for line in logs] == ["database_failed", "database_recovered"]


def test_a_bug_is_raised():
    with pytest.raises(ProgrammingError):
        Outage().survive(lambda: fail("SELECT FROM promotion.nowhere"))


def test_work_that_could_not_be_done_is_no_outage():
    with capture_logs() as logs:
        assert Outage().survive(lambda: False) is False
    assert logs == []
