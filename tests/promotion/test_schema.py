"""The database's own guards, against plain SQL of other programs."""

import uuid
from datetime import timedelta

import pytest
from django.db import DataError, IntegrityError, connection

from tests.factories import PurchaseFactory
from tests.readings import row

pytestmark = pytest.mark.django_db
REQUIRED = {
    "tenant_id": str(uuid.UUID(int=1)),
    "package_kind": "Top",
    "starts_at": "2026-01-01Z",
    "ends_at": "2026-02-01Z",
}


def insert(table, **columns):
    names, places = ", ".join(columns), ", ".join(["%s"] * len(columns))
    return execute(f"INSERT INTO promotion.{table} ({names}) VALUES ({places}) RETURNING *", columns.values())


def execute(sql, parameters=()):
    with connection.cursor() as cursor:
        cursor.execute(sql, list(parameters))
        if cursor.description:
            return dict(zip([column.name for column in cursor.description], cursor.fetchone(), strict=True))
        return cursor.rowcount


def update(purchase, assignment):
    return execute(f"UPDATE promotion.promotion_purchases SET {assignment} WHERE id = %s", [purchase.pk])


@pytest.mark.parametrize("column", REQUIRED)
def test_every_required_column_is_required(column):
    with pytest.raises(IntegrityError, match=column):
        insert("promotion_purchases", **{name: value for name, value in REQUIRED.items() if name != column})


def test_a_purchase_needs_its_required_columns_alone():
    purchase = insert("promotion_purchases", **REQUIRED)
    age = execute(
        "SELECT clock_timestamp() - created_at AS age, updated_at - created_at AS drift"
        " FROM promotion.promotion_purchases"
    )
    assert purchase["id"].version == 4
    assert (purchase["status"], purchase["payment_status"], purchase["version"]) == ("Pending", "Pending", 1)
    assert timedelta() < age["age"] < timedelta(minutes=1)
    assert age["drift"] == timedelta()


@pytest.mark.parametrize("column", ["purchase_id", "target_type", "target_id"])
def test_every_required_column_of_a_target_is_required(column):
    required = {"purchase_id": PurchaseFactory().pk, "target_type": "NewsPost", "target_id": uuid.UUID(int=2)}
    del required[column]
    with pytest.raises(IntegrityError, match=column):
        insert("promotion_purchase_targets", **required)


def test_a_target_needs_its_required_columns_alone():
    purchase = PurchaseFactory()
    target = insert(
        "promotion_purchase_targets", purchase_id=purchase.pk, target_type="NewsPost", target_id=uuid.UUID(int=2)
    )
    assert isinstance(target["id"], int)


@pytest.mark.parametrize("status", ["Pending", "Active", "Expired", "Cancelled"])
@pytest.mark.parametrize("payment_status", ["NotRequired", "Pending", "Paid", "Failed", "Refunded"])
def test_takes_every_known_status(status, payment_status):
    insert("promotion_purchases", **REQUIRED, status=status, payment_status=payment_status)


@pytest.mark.parametrize("column", ["status", "payment_status"])
@pytest.mark.parametrize("value", ["expired", "", "Paused"])
def test_refuses_an_unknown_status(column, value):
    with pytest.raises(IntegrityError, match=f"purchases_{column}_known"):
        insert("promotion_purchases", **REQUIRED, **{column: value})


@pytest.mark.parametrize("value", ["infinity", "-infinity", "0044-03-15 BC"])
@pytest.mark.parametrize("column", ["starts_at", "ends_at", "created_at", "updated_at"])
def test_refuses_an_instant_that_no_event_can_express(column, value):
    with pytest.raises(IntegrityError, match="purchases_instants_finite"):
        insert("promotion_purchases", **REQUIRED | {column: value})


def test_refuses_a_date_that_is_none():
    with pytest.raises(DataError):
        insert("promotion_purchases", **REQUIRED | {"ends_at": "2026-02-30Z"})


CHANGES = [("Expired", status) for status in ("Pending", "Active", "Cancelled")]
CHANGES += [("Cancelled", status) for status in ("Pending", "Active", "Expired")]


@pytest.mark.parametrize(("terminal", "status"), CHANGES)
def test_terminal_is_terminal_for_plain_sql(terminal, status):
    purchase = PurchaseFactory(status=terminal)
    with pytest.raises(IntegrityError, match="INV-6"):
        update(purchase, f"status = '{status}'")


def test_a_terminal_purchase_may_still_be_paid_back():
    purchase = PurchaseFactory(cancelled=True)
    before = row(purchase)
    assert update(purchase, "payment_status = 'Refunded', status = status") == 1
    assert row(purchase) == before | {"payment_status": "Refunded"}


def test_an_unfinished_purchase_moves_freely():
    purchase = PurchaseFactory(pending=True)
    for status in ("Active", "Pending", "Active", "Cancelled"):
        assert update(purchase, f"status = '{status}'") == 1


def test_deleting_a_stuck_purchase_by_plain_sql_is_nobodys_failure():
    purchase = PurchaseFactory(targets=0)
    insert(
        "expiration_failures",
        purchase_id=purchase.pk,
        first_failed_at="now",
        last_failed_at="now",
        attempts=1,
        reason="",
    )
    assert execute("DELETE FROM promotion.promotion_purchases WHERE id = %s", [purchase.pk]) == 1
