"""Which messages a relay takes: never one that another holds, that waits, or that would overtake its key."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outbox import claiming
from outbox.models import Outbox
from tests.connections import other_connection
from tests.messages import record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOON = NOW + timedelta(seconds=1)

pytestmark = pytest.mark.django_db


def claim(limit=100):
    with transaction.atomic():
        return [message.pk for message in claiming.claim(limit, at=NOW)]


def test_published_parked_and_waiting_messages_stay():
    record("a", published_at=NOW)
    record("b", parked_at=NOW)
    record("c", next_attempt_at=SOON)
    record("c")  # behind one that waits

    assert claim() == []


def test_messages_before_a_waiting_one_and_behind_a_parked_one_are_taken_in_id_order():
    behind = record("parked", parked_at=NOW), record("parked")
    before = record("waiting"), record("waiting", next_attempt_at=SOON)
    over = record("waited", next_attempt_at=NOW)

    assert claim() == [*behind[1], *before[0], *over]


def test_limit_takes_the_first_of_a_key():
    ids = record("hot", count=20)

    assert claim(limit=7) == ids[:7]


def test_waiting_key_with_many_messages_takes_no_place():
    record("hot", next_attempt_at=SOON)
    record("hot", count=600)
    free = record("free")

    assert claim(limit=5) == free


def test_batch_is_cut_at_its_size_but_never_empty(monkeypatch):
    monkeypatch.setattr(claiming, "MAX_BYTES", 10)
    first, second = record("a", "éé" * 10), record("b", "x")

    assert claim() == first
    Outbox.objects.filter(pk__in=first).delete()
    assert claim() == second


@pytest.mark.django_db(transaction=True)
def test_rows_locked_by_somebody_are_passed_over_with_the_later_ones_of_their_key():
    locked, later = record("a"), record("a")
    other = record("b")

    with other_connection() as link:
        link.execute("SELECT FROM promotion.outbox WHERE id = %s FOR UPDATE", locked)
        assert claim() == other
    assert claim() == [*locked, *later, *other]


@pytest.mark.django_db(transaction=True)
def test_key_goes_up_to_the_message_that_somebody_holds():
    (before,), (locked,), (behind,) = record("a"), record("a"), record("a")

    with other_connection() as link:
        link.execute("SELECT FROM promotion.outbox WHERE id = %s FOR UPDATE", [locked])
        assert claim() == [before]
    assert claim() == [before, locked, behind]


@pytest.mark.django_db(transaction=True)
def test_many_held_keys_at_the_head_do_not_hold_back_their_lanes():
    """More than a first look finds, in every lane; among them a key with many messages behind the held one."""
    first = record("hot")
    record("hot", count=50)
    locked = [message for number in range(200) for message in record(f"held {number}")]
    free = [message for number in range(20) for message in record(f"free {number}")]

    with other_connection() as link:
        link.execute("SELECT FROM promotion.outbox WHERE id = ANY(%s) FOR UPDATE", [first + locked])
        taken = set()
        for _ in range(20):  # any 16 of 64 lanes at a time
            found = claim(limit=16)
            taken.update(found)
            Outbox.objects.filter(pk__in=found).update(published_at=NOW)
        assert taken == set(free)


@pytest.mark.django_db(transaction=True)
def test_lanes_of_another_relay_are_passed_over():
    ids = record("a", count=3)

    with other_connection() as link:
        link.execute("SELECT FROM promotion.outbox_lanes FOR UPDATE")
        assert claim() == []
    assert claim() == ids


@pytest.mark.django_db(transaction=True)
def test_several_relays_share_the_lanes():
    keys = [f"key {number}" for number in range(300)]
    Outbox.objects.bulk_create(
        [Outbox(event_type="t", aggregate_id="0" * 32, topic="t", key=key, payload="{}") for key in keys]
    )
    with transaction.atomic():
        first = {message.key for message in claiming.claim(1_000, at=NOW)}
        with other_connection() as link:
            link.execute("SET lock_timeout = '1s'")
            free = link.execute("SELECT count(*) FROM (SELECT FROM promotion.outbox_lanes FOR UPDATE SKIP LOCKED) AS l")
            assert free.fetchone() == (64 - claiming.LANES_PER_RELAY,)
    assert 0 < len(first) < len(keys)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["free", "waiting", "parked", "published"]))))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_statement_agrees_with_the_queryset(rows):
    columns = {
        "free": {},
        "waiting": {"next_attempt_at": SOON},
        "parked": {"parked_at": NOW},
        "published": {"published_at": NOW},
    }
    with transaction.atomic():
        for key, word in rows:
            record(key, **columns[word])
        expected = list(Outbox.objects.publishable(at=NOW).order_by("id").values_list("pk", flat=True))

        assert claim() == expected
        transaction.set_rollback(True)


def test_a_claim_is_three_queries(django_assert_num_queries):
    record("a", count=3)
    with transaction.atomic(), django_assert_num_queries(3):
        claiming.claim(10, at=NOW)


def test_every_key_has_a_lane():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), min(lane), max(lane) FROM promotion.outbox_lanes")
        assert cursor.fetchone() == (64, 0, 63)
    record("ключ 鍵")
    assert 0 <= Outbox.objects.get().lane < 64
