"""The operators' pages of purchases: what is shown, and that acts go through the use cases."""

import json
import uuid
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from outbox.models import Outbox
from promotion.models import ExpirationFailure, PromotionPurchase
from tests.factories import PurchaseFactory, TargetFactory
from tests.operators import Person, messages_of
from tests.readings import row, statuses

pytestmark = pytest.mark.django_db
LIST = reverse("admin:promotion_promotionpurchase_changelist")
CANCEL = reverse("admin:promotion_cancel")
RETRY = reverse("admin:promotion_retry")


def page(purchase):
    return reverse("admin:promotion_promotionpurchase_change", args=[purchase.pk])


def shown(response):
    return [purchase.pk for purchase in response.context["cl"].result_list]


@pytest.fixture
def operator():
    return Person("Operator")


@pytest.fixture
def purchases():
    """One of each sort, by name."""
    now = timezone.now()
    made = {
        "overdue": PurchaseFactory(ends_at=now - timedelta(hours=3, minutes=12)),
        "stuck": PurchaseFactory(ends_at=now - timedelta(days=2), targets=0),
        "soon": PurchaseFactory(ends_at=now + timedelta(minutes=30), package_kind="Top"),
        "later": PurchaseFactory(ends_at=now + timedelta(days=5), payment_status="Failed"),
        "pending": PurchaseFactory(pending=True, ends_at=now + timedelta(days=9)),
        "expired": PurchaseFactory(expired=True, ends_at=now - timedelta(hours=5)),
        "cancelled": PurchaseFactory(cancelled=True, ends_at=now - timedelta(hours=5)),
    }
    ExpirationFailure.objects.remember({made["stuck"].pk: "the purchase has no targets"}, at=now)
    return made


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({}, ["stuck", "overdue", "soon", "later"]),
        ({"status": "pending"}, ["pending"]),
        ({"status": "expired"}, ["expired"]),
        ({"end": "overdue"}, ["stuck", "overdue"]),
        ({"end": "stuck"}, ["stuck"]),
        ({"end": "hour"}, ["soon"]),
        ({"end": "week"}, ["soon", "later"]),
        ({"status": "cancelled", "end": "past-day"}, ["cancelled"]),
        ({"package_kind__exact": "Top"}, ["soon"]),
        ({"payment_status__exact": "Failed"}, ["later"]),
        ({"end": "nonsense"}, ["stuck", "overdue", "soon", "later"]),
    ],
)
def test_filters(operator, purchases, parameters, names):
    assert shown(operator.get(LIST, **parameters)) == [purchases[name].pk for name in names]


def test_the_badge_tells_the_age_in_words(operator, purchases):
    text = operator.get(LIST, status="all").text
    for badge in (
        '<span class="badge bad">Overdue 3 h 12 min</span>',
        '<span class="badge bad">Stuck, overdue 2 d</span>',
        '<span class="badge ok">Active, ends in 29 min</span>',
        '<span class="badge busy">Pending</span>',
        '<span class="badge idle">Expired ',
    ):
        assert badge in text


def test_a_purchase_that_is_due_within_the_interval_is_not_alarming(operator):
    PurchaseFactory(ends_at=timezone.now() - timedelta(seconds=20))
    assert '<span class="badge warn">Overdue 2' in operator.get(LIST).text


@pytest.mark.parametrize("name", ["expired", "soon"])
def test_search_finds_a_whole_id_in_any_status(operator, purchases, name):
    purchase = purchases[name]
    assert shown(operator.get(LIST, q=str(purchase.pk))) == [purchase.pk]
    assert shown(operator.get(LIST, q=f" {purchase.tenant_id} ".upper())) == [purchase.pk]
    assert shown(operator.get(LIST, tenant_id=str(purchase.tenant_id))) == [purchase.pk]


def test_search_says_that_it_needs_a_whole_id(operator, purchases):
    response = operator.get(LIST, q=str(purchases["soon"].pk)[:20])
    assert shown(response) == []
    assert "is not a whole id" in messages_of(response)


def test_the_page_shows_all_there_is_to_know_of_a_stuck_one(operator, purchases):
    text = operator.get(page(purchases["stuck"])).text
    assert "the purchase has no targets" in text
    assert "1 attempts" in text
    assert "Retry now" in text


@pytest.mark.parametrize("name", ["overdue", "expired"])
def test_nothing_can_be_edited_added_or_deleted(name, operator, purchases):
    purchase = purchases[name]
    operator.user.is_superuser = True
    operator.user.save()
    before = row(purchase)
    add, delete = (reverse(f"admin:promotion_promotionpurchase_{act}", args=args) for act, args in
                   [("add", []), ("delete", [purchase.pk])])  # fmt: skip
    refused = [operator.post(page(purchase), status="Pending"), operator.get(add), operator.post(delete, post="yes")]
    assert [response.status_code for response in refused] == [403] * 3
    assert row(purchase) == before
    assert 'name="status"' not in operator.get(page(purchase)).text


def test_cancel_asks_for_a_reason_then_cancels_tells_and_audits(operator, purchases):
    purchase, other = purchases["soon"], purchases["later"]
    before = row(other)
    version = f"{purchase.pk}:{purchase.version}"
    assert version in operator.get(CANCEL, id=str(purchase.pk)).text

    unreasoned = operator.post(CANCEL, version=version, reason=" ")
    assert "This field is required" in unreasoned.text
    assert version in unreasoned.text
    assert row(purchase)["status"] == "Active"

    response = operator.post(CANCEL, version=version, reason="paid twice <b>")
    assert response.redirect_chain[0] == (page(purchase), 302)
    assert "cancelled" in messages_of(response)
    assert (row(purchase)["status"], row(purchase)["version"]) == ("Cancelled", purchase.version + 1)
    assert row(other) == before
    assert json.loads(Outbox.objects.get().payload)["status"] == "Cancelled"
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (operator.user, str(purchase.pk))
    assert entry.change_message == "Cancelled: paid twice <b>"
    assert "Cancelled" in response.text
    assert f'href="/admin/outbox/outbox/{Outbox.objects.get().pk}/change/"' in response.text
    assert "paid twice &lt;b&gt;" in operator.get(f"/admin/promotion/promotionpurchase/{purchase.pk}/history/").text


def test_several_are_chosen_in_the_list(operator, purchases):
    chosen = [purchases[name] for name in ("soon", "later", "expired")]
    ids = [str(purchase.pk) for purchase in chosen]
    response = operator.post(f"{LIST}?status=all", action="cancel_chosen", _selected_action=ids)
    assert "Cancel 2 purchases" in response.text
    versions = [f"{purchase.pk}:{purchase.version}" for purchase in chosen]
    response = operator.post(CANCEL, version=versions, reason="campaign withdrawn")
    assert statuses(chosen) == ["Cancelled", "Cancelled", "Expired"]
    assert "2 purchases cancelled" in messages_of(response)
    assert "already Expired" in messages_of(response)


def test_what_has_changed_since_it_was_shown_is_left_alone(operator, purchases):
    purchase = purchases["soon"]
    response = operator.post(CANCEL, version=f"{purchase.pk}:{purchase.version - 1}", reason="x")
    assert "has version" in messages_of(response)
    assert row(purchase)["status"] == "Active"
    assert not LogEntry.objects.exists()


def test_retry_expires_a_healed_one_and_says_why_another_stays(operator, purchases):
    healed, sick = purchases["stuck"], PurchaseFactory(targets=0, ends_at=timezone.now() - timedelta(days=1))
    ExpirationFailure.objects.remember({sick.pk: "x"}, at=timezone.now())
    TargetFactory(purchase=healed)
    response = operator.post(f"{LIST}?end=stuck", action="retry_chosen", _selected_action=[healed.pk, sick.pk])
    assert statuses([healed, sick, purchases["overdue"]]) == ["Expired", "Active", "Active"]
    assert "no targets" in messages_of(response)
    assert Outbox.objects.get().aggregate_id == healed.pk
    assert list(ExpirationFailure.objects.values_list("pk", flat=True)) == [sick.pk]
    assert LogEntry.objects.count() == 2
    assert operator.post(RETRY, id=str(sick.pk)).redirect_chain[0] == (page(sick), 302)


@pytest.mark.parametrize(("role", "view", "act"), [("Viewer", 200, 403), (None, 403, 403)])
def test_roles(purchases, role, view, act):
    person, purchase = Person(role), purchases["stuck"]
    assert person.get(LIST).status_code == view
    assert person.get(page(purchase)).status_code == view
    assert person.get(CANCEL, id=str(purchase.pk)).status_code == act
    assert person.post(CANCEL, version=f"{purchase.pk}:1", reason="x").status_code == act
    assert person.post(RETRY, id=str(purchase.pk)).status_code == act
    if role:
        assert "Cancel …" not in person.get(page(purchase)).text
        assert 'value="cancel_chosen"' not in person.get(LIST).text
    assert PromotionPurchase.objects.filter(status="Cancelled").count() == 1


def test_strangers_and_forged_requests_are_refused(client, operator, purchases):
    purchase = purchases["soon"]
    assert client.get(LIST, secure=True).status_code == 302
    operator.client.handler.enforce_csrf_checks = True
    fields = {"version": f"{purchase.pk}:{purchase.version}", "reason": "x"}
    assert operator.post(CANCEL, **fields).status_code == 403
    assert row(purchase)["status"] == "Active"


def test_too_many_at_once_are_refused(operator):
    ids = [str(purchase.pk) for purchase in PurchaseFactory.create_batch(51, targets=0)]
    response = operator.post(LIST, action="cancel_chosen", _selected_action=ids)
    assert "Choose 50" in messages_of(response)


def test_a_page_of_an_unknown_purchase_leads_back(operator):
    response = operator.get(reverse("admin:promotion_promotionpurchase_change", args=[uuid.uuid4()]))
    assert response.status_code == 302
