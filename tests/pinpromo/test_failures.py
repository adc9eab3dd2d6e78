"""Infrastructure or a row's own: told apart by SQLSTATE, described without a value of the row."""

import psycopg
import pytest
from django import db
from django.db import connection

from outbox.recording import UnfitMessage
from pinpromo import failures
from promotion.batches import OutOfTime
from tests.factories import PurchaseFactory


def raised(sql):
    """The error, as Django wraps it."""
    with pytest.raises(db.Error) as caught, connection.cursor() as cursor:
        cursor.execute(sql)
    return caught.value


@pytest.mark.parametrize(
    ("error", "infrastructure"),
    [
        (db.OperationalError("connection refused"), True),
        (db.InterfaceError("connection already closed"), True),
        (psycopg.OperationalError("the connection is lost"), False),  # not wrapped: not the connection of ours
        (OutOfTime("the cycle has used up its time"), True),
        (db.IntegrityError("no word from the server"), False),
        (db.DataError("no word from the server"), False),
        (ValueError("poison"), False),
    ],
)
def test_without_a_sqlstate_the_class_decides(error, infrastructure):
    assert failures.is_infrastructure(error) is infrastructure


@pytest.mark.django_db
def test_a_row_s_own_error_is_described_without_its_values():
    purchase = PurchaseFactory()
    error = raised(f"UPDATE promotion.promotion_purchases SET status = 'Secret' WHERE id = '{purchase.pk}'")
    assert "Secret" in str(error)
    assert failures.describe(error) == "CheckViolation: SQLSTATE 23514, purchases_status_known"
    assert not failures.is_infrastructure(error)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "SELECT FROM promotion.nowhere",
            "the database is not migrated (UndefinedTable: SQLSTATE 42P01): run manage.py migrate",
        ),
        ("SELECT 1 / 0", "the database refused a statement (DivisionByZero: SQLSTATE 22012)"),
    ],
)
def test_advice_is_one_line(sql, words):
    assert failures.advise(raised(sql)) == words


def test_advice_on_an_outage_says_what_became_of_the_work():
    error = db.OperationalError("gone")
    error.__cause__ = psycopg.OperationalError('connection to server at "127.0.0.1" failed: refused\nIs it running?')
    words = failures.advise(error)
    assert words.startswith(
        'the database failed (OperationalError: connection to server at "127.0.0.1" failed: refused)'
    )
    assert "rolled back, run again" in words
    assert "\n" not in words


def test_our_own_words_are_told_foreign_ones_are_not():
    assert failures.describe(UnfitMessage("too large")) == "UnfitMessage: too large"
    assert failures.describe(KeyError("secret")) == "KeyError"
