"""Operators requeue and skip: what changes, what does not, and in which order it goes out."""

from datetime import UTC, datetime

import pytest
from django.db import transaction
from structlog.testing import capture_logs

from outbox.models import CHANNEL, Outbox
from outbox.operations import requeue, skip
from tests.connections import other_connection
from tests.messages import record, state, states
from tests.programs import manage

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PARKED = {"parked_at": NOW, "attempts": 10, "last_error": "TOO_LARGE"}
SKIPPED = PARKED | {"skipped_at": NOW}

pytestmark = pytest.mark.django_db


def columns(message_id):
    return Outbox.objects.values().get(pk=message_id)


def test_requeue_leaves_pending_and_published_messages_alone():
    ids = record() + record(next_attempt_at=NOW, attempts=3) + record(published_at=NOW)
    before = [columns(message_id) for message_id in ids]

    assert requeue(ids, by="op") == []

    assert [columns(message_id) for message_id in ids] == before


def test_requeue_makes_parked_and_skipped_messages_new():
    (parked,), (skipped,) = record(**PARKED), record(**SKIPPED)

    with capture_logs() as logs:
        assert requeue([skipped, parked, 4711], by="op") == [parked, skipped]

    assert states(parked, skipped) == ["pending", "pending"]
    assert (columns(parked)["attempts"], columns(parked)["last_error"]) == (0, "")
    assert [(line["event"], line["message_ids"], line["by"]) for line in logs] == [
        ("messages_requeued", [parked, skipped], "op")
    ]


def test_requeued_messages_stand_before_the_later_ones_of_their_key():
    first, later, second = record("a", **PARKED), record("a"), record("a", **PARKED)

    requeue([*second, *first], by="op")

    publishable = Outbox.objects.publishable(at=NOW).order_by("id")
    assert list(publishable.values_list("pk", flat=True)) == [*first, *later, *second]


def test_skip_gives_up_for_good_and_keeps_the_reason():
    (pending,), (parked,), (published,) = record(), record(**PARKED), record(published_at=NOW)

    with capture_logs() as logs:
        assert skip([pending, parked, published], by="op") == [pending, parked]

    assert states(pending, parked, published) == ["skipped", "skipped", "published"]
    assert columns(parked)["last_error"] == "TOO_LARGE"
    assert columns(parked)["parked_at"] == NOW
    assert not Outbox.objects.parked().exists()
    assert not Outbox.objects.pending().exists()
    assert logs[0]["event"] == "messages_skipped"


@pytest.mark.django_db(transaction=True)
def test_message_in_a_relays_hand_is_left_to_it():
    (message_id,) = record()
    with other_connection() as relay:
        relay.execute("SELECT FROM promotion.outbox FOR UPDATE")
        assert skip([message_id], by="op") == []
    assert state(message_id) == "pending"


@pytest.mark.django_db(transaction=True)
def test_requeueing_wakes_the_relay():
    parked = record(**PARKED)
    with other_connection(autocommit=True) as link:
        link.execute(f"LISTEN {CHANNEL}")
        requeue(parked, by="op")
        assert list(link.notifies(timeout=20, stop_after=1))


@pytest.mark.django_db(transaction=True)
def test_both_roll_back_with_their_caller():
    (parked,) = record(**PARKED)

    with transaction.atomic():
        requeue([parked], by="op")
        transaction.set_rollback(True)

    assert state(parked) == "parked"


@pytest.mark.django_db(transaction=True)
def test_requeue_outbox_command():
    (one,), (two,), (other,), (skipped,) = (
        record(**PARKED), record(**PARKED), record(topic="other", **PARKED), record(**SKIPPED),
    )  # fmt: skip

    by_id = manage("requeue_outbox", one, 4711)
    by_topic = manage("requeue_outbox", "--topic", "test")
    everything = manage("requeue_outbox", "--all")
    nothing = manage("requeue_outbox")

    assert (by_id.returncode, by_id.stdout) == (1, "requeued 1\n")
    assert by_id.stderr.splitlines()[-1].endswith("not parked, or locked by somebody: 4711")
    assert (by_topic.returncode, by_topic.stdout) == (0, "requeued 1\n")
    assert (everything.returncode, everything.stdout) == (0, "requeued 1\n")
    assert nothing.returncode == 2
    assert states(one, two, other, skipped) == ["pending", "pending", "pending", "skipped"]
