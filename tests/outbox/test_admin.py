"""The operators' pages of messages."""

import json
import uuid
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from outbox.models import Outbox
from tests.operators import Person, messages_of

pytestmark = pytest.mark.django_db
LIST = reverse("admin:outbox_outbox_changelist")


@pytest.fixture
def operator():
    return Person("Operator")


def make_message(**values):
    subject = uuid.uuid4()
    defaults = {"event_type": "PromotionPurchaseChanged", "aggregate_id": subject, "topic": "t", "key": str(subject)}
    return Outbox.objects.create(**defaults | {"payload": '{"a":1}'} | values)


@pytest.fixture
def found():
    """One message of each state, by name."""
    now = timezone.now()
    return {
        "pending": make_message(created_at=now - timedelta(minutes=7)),
        "published": make_message(published_at=now, published_partition=3, published_offset=41),
        "parked": make_message(parked_at=now, attempts=10, last_error="MSG_SIZE_TOO_LARGE"),
        "skipped": make_message(parked_at=now, skipped_at=now),
    }


def page(message):
    return reverse("admin:outbox_outbox_change", args=[message.pk])


def act(message, name):
    return reverse("admin:outbox_act", args=[message.pk, name])


def shown(response):
    return [message.pk for message in response.context["cl"].result_list]


@pytest.mark.parametrize("state", ["pending", "published", "parked", "skipped"])
def test_filter_and_badge(operator, found, state):
    response = operator.get(LIST, state=state)
    assert shown(response) == [found[state].pk]
    assert f">{state.capitalize()} " in response.text


def test_search_by_event_and_by_what_it_tells_of(operator, found):
    message = found["published"]
    assert (
        shown(operator.get(LIST, q=message.event_id))
        == shown(operator.get(LIST, q=message.aggregate_id))
        == [message.pk]
    )


def test_the_list_does_not_read_payloads(operator, found, django_assert_max_num_queries):
    with django_assert_max_num_queries(8) as queries:
        operator.get(LIST)
    assert not any("payload" in query["sql"] for query in queries.captured_queries)


def test_the_page_shows_where_it_went_and_exactly_what(operator):
    payload = '{"b":  1, "a": "<script>&é"}'
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    message = make_message(payload=payload, headers={"ce_id": "x", "traceparent": traceparent},
                           published_at=timezone.now(), published_partition=3, published_offset=41)  # fmt: skip
    text = operator.get(page(message)).text
    assert "partition 3, offset 41" in text
    assert "{&quot;b&quot;:  1, &quot;a&quot;: &quot;&lt;script&gt;&amp;é&quot;}" in text
    assert "  &quot;b&quot;: 1,\n  &quot;a&quot;" in text
    assert f'href="/admin/promotion/promotionpurchase/{message.aggregate_id}/change/"' in text
    assert "4bf92f3577b34da6a3ce929d0e0e4736" in text


def test_a_trace_is_linked_where_its_pages_are_known(operator, settings):
    settings.TRACE_URL = "https://traces.example.com/{trace_id}?x=1"
    text = operator.get(page(make_message(headers={"traceparent": "00-4bf9-00f0-01"}))).text
    assert 'href="https://traces.example.com/4bf9?x=1"' in text


@pytest.mark.parametrize("payload", ["no json", "[" * 100_000, "", "1" * 5_000])
def test_odd_payloads_are_shown_all_the_same(operator, payload):
    assert operator.get(page(make_message(payload=payload))).status_code == 200


@pytest.mark.parametrize("headers", [["a list"], "a text", 7, {"traceparent": 7, "n": {"deep": []}}])
def test_odd_headers_are_no_hindrance(operator, headers):
    assert operator.get(page(make_message(headers=headers))).status_code == 200


def test_requeue_makes_a_parked_message_pending_and_audits(operator, found):
    parked, others = found["parked"], [found[name] for name in ("pending", "published", "skipped")]
    before = [Outbox.objects.values().get(pk=message.pk) for message in others]
    response = operator.post(act(parked, "requeue"))
    assert "1 requeued" in messages_of(response)
    parked.refresh_from_db()
    assert (parked.parked_at, parked.attempts) == (None, 0)
    assert [Outbox.objects.values().get(pk=message.pk) for message in others] == before
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.change_message) == (operator.user, str(parked.pk), "Requeued")


def test_actions_of_the_list(operator, found):
    ids = [message.pk for message in found.values()]
    response = operator.post(LIST, action="skip", _selected_action=ids)
    assert "2 skipped" in messages_of(response)
    assert "2 left alone" in messages_of(response)
    assert Outbox.objects.skipped().count() == 3
    assert LogEntry.objects.count() == 2
    response = operator.post(LIST, action="requeue", _selected_action=ids)
    assert "3 requeued" in messages_of(response)


def test_audit_and_act_stand_or_fall_together(operator, found):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_admin_log ADD CONSTRAINT no_audit CHECK (false) NOT VALID")
    response = operator.post(act(found["parked"], "requeue"))
    assert "Not requeued" in messages_of(response)
    assert Outbox.objects.parked().exists()


@pytest.mark.parametrize(("role", "status"), [("Viewer", 200), (None, 403)])
def test_roles(found, role, status):
    person, parked = Person(role), found["parked"]
    assert person.get(LIST).status_code == status
    assert "<button>Requeue" not in person.get(page(parked)).text
    for name in ("requeue", "skip", "nonsense"):
        assert person.post(act(parked, name)).status_code == 403
    assert Outbox.objects.parked().exists()


def test_nothing_can_be_edited(operator, found):
    operator.user.is_superuser = True
    operator.user.save()
    before = json.dumps(list(Outbox.objects.order_by("id").values()), default=str)
    assert operator.post(page(found["pending"]), payload="x").status_code == 403
    assert operator.get(reverse("admin:outbox_outbox_add")).status_code == 403
    assert operator.get(act(found["pending"], "skip")).status_code == 405
    assert json.dumps(list(Outbox.objects.order_by("id").values()), default=str) == before
