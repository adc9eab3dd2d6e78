"""`POST /promotions/{id}/cancel` as `interface.md` promises it."""

import json
import uuid

import pytest
from django.db import connection

from outbox.models import Outbox
from promotion.models import PromotionPurchase
from tests.factories import PurchaseFactory
from tests.tokens import SETTINGS, token

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _configured(settings):
    for name, value in SETTINGS.items():
        setattr(settings, name, value)


@pytest.fixture
def send(client):
    def send(purchase_id, bearer=None, method="POST", **options):
        headers = options.pop("headers", {}) | ({"Authorization": f"Bearer {bearer}"} if bearer else {})
        return client.generic(method, f"/promotions/{purchase_id}/cancel", headers=headers, secure=True, **options)

    return send


def assert_problem(response, status):
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert set(problem) == {"type", "title", "status", "detail"}
    assert problem["status"] == status
    return problem["detail"]


def test_cancels_for_the_purchases_company(send):
    purchase = PurchaseFactory(version=4)
    response = send(purchase.pk, token(purchase.tenant_id))
    assert response.status_code == 200
    assert response["ETag"] == '"5"'
    assert "no-store" in response["Cache-Control"]
    answer, event = response.json(), json.loads(Outbox.objects.get().payload)
    assert (answer["status"], answer["version"]) == ("Cancelled", 5)
    assert answer == {name: event[name] for name in answer}
    assert set(event) - set(answer) == {"eventId", "occurredAt", "correlationId"}


def test_a_poison_purchase_can_be_cancelled(send):
    purchase = PurchaseFactory(targets=0, package_kind="Mystery")
    response = send(purchase.pk, token(purchase.tenant_id))
    assert (response.status_code, response.json()["targets"]) == (200, [])


@pytest.mark.parametrize("authorization", ["", "Basic YTpi", "Bearer", "Bearer ", "Bearer a.b.c", "bearer a b"])
@pytest.mark.parametrize(("method", "known"), [("POST", True), ("POST", False), ("GET", True)])
def test_401_before_anything_else_is_looked_at(send, django_assert_num_queries, authorization, method, known):
    purchase_id = PurchaseFactory().pk if known else "not-a-uuid"
    with django_assert_num_queries(0):
        response = send(purchase_id, method=method, headers={"Authorization": authorization})
    assert_problem(response, 401)
    assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "changes",
    [
        {"scope": None},
        {"scope": "promotions:cancel2 xpromotions:cancel"},
        {"scope": ["promotions:cancel"]},
        {"tenant_id": ""},
        {"tenant_id": "*"},
        {"tenant_id": 5},
        {"tenant_id": "{" + str(uuid.uuid4()) + "}"},
    ],
)
def test_403_without_scope_or_tenant(send, django_assert_num_queries, changes):
    purchase = PurchaseFactory()
    with django_assert_num_queries(0):
        response = send(purchase.pk, token(**changes))
    assert_problem(response, 403)
    assert 'error="insufficient_scope"' in response["WWW-Authenticate"]


def test_404_is_the_same_for_the_unknown_and_for_another_companys(send, django_assert_num_queries):
    """The same queries, too: nothing but one look-up by id and company."""
    bearer = token()
    seen = []
    for purchase_id in [uuid.uuid4(), PurchaseFactory().pk]:
        with django_assert_num_queries(5):  # open, bound, look up, roll back (two statements inside a test)
            response = send(purchase_id, bearer)
        assert_problem(response, 404)
        seen.append((response.content, sorted(response.headers.items())))
    assert send("not-a-uuid", bearer).content == seen[0][0]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("purchase_id", ["x", "..", "a/b", "%00", "1" * 32, str(uuid.uuid4()) + "%0A", "%F0%9F%92%A9"])
def test_404_for_what_is_no_uuid(send, django_assert_num_queries, purchase_id):
    with django_assert_num_queries(0):
        assert_problem(send(purchase_id, token()), 404)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_405_for_other_methods(send, method):
    purchase = PurchaseFactory()
    response = send(purchase.pk, token(purchase.tenant_id), method=method)
    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert PromotionPurchase.objects.get().status == "Active"


@pytest.mark.parametrize("status", ["Expired", "Cancelled"])
@pytest.mark.parametrize("headers", [{}, {"If-Match": '"1"'}])
def test_409_says_which_terminal_state(send, status, headers):
    purchase = PurchaseFactory(status=status, version=2)
    response = send(purchase.pk, token(purchase.tenant_id), headers=headers)
    assert status in assert_problem(response, 409)
    assert not Outbox.objects.exists()


@pytest.mark.parametrize("etag", ['"2"', 'W/"3"', "3", '"3', "garbage", '""', '"٣"', '"' + "9" * 5000 + '"'])
def test_412_unless_the_version_matches(send, etag):
    purchase = PurchaseFactory(version=3)
    response = send(purchase.pk, token(purchase.tenant_id), headers={"If-Match": etag})
    assert_problem(response, 412)
    assert PromotionPurchase.objects.get().status == "Active"


@pytest.mark.parametrize("etag", ['"3"', '"2", "3"', "*"])
def test_a_matching_version_is_cancelled(send, etag):
    purchase = PurchaseFactory(version=3)
    assert send(purchase.pk, token(purchase.tenant_id), headers={"If-Match": etag}).status_code == 200


def test_a_large_body_is_not_looked_at(send):
    purchase = PurchaseFactory()
    response = send(purchase.pk, token(purchase.tenant_id), data=b"x" * 6_000_000, content_type="application/json")
    assert response.status_code == 200


@pytest.mark.parametrize("oddity", [{"version": 2_147_483_647}, {"package_kind": "x" * 1_000_000}], ids=list)
def test_500_tells_nothing_of_why_it_was_refused(send, oddity):
    purchase = PurchaseFactory(**oddity)
    detail = assert_problem(send(purchase.pk, token(purchase.tenant_id)), 500)
    assert detail == "the purchase could not be cancelled; nothing was changed"
    assert PromotionPurchase.objects.get().status == "Active"


def test_503_when_the_database_cancels_the_statement(send):
    purchase = PurchaseFactory()
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION public.test_hostile() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '57014'; END $$;"
            "CREATE TRIGGER hostile BEFORE UPDATE ON promotion.promotion_purchases"
            " FOR EACH ROW EXECUTE FUNCTION public.test_hostile()"
        )
    response = send(purchase.pk, token(purchase.tenant_id))
    assert_problem(response, 503)
    assert int(response["Retry-After"]) > 0
