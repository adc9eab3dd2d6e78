"""The relay's cycle: what is marked, what is tried again and when, what is parked."""

import contextlib
import time
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from django.db import OperationalError, connection, transaction

from devstack.mock import PRODUCE
from outbox.models import Outbox
from outbox.relay import run_cycle
from tests.connections import other_connection
from tests.messages import record, states
from tests.programs import eventually

TOO_LARGE, DENIED = 10, 29
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def cycle(publisher, no_stop):
    return lambda at=NOW: run_cycle(publisher, at=at, batch_size=100, stop=no_stop)


def waits(message_id, at=NOW):
    return (Outbox.objects.get(pk=message_id).next_attempt_at - at).total_seconds()


def test_nothing_to_publish(cycle):
    published = record(published_at=NOW)
    before = Outbox.objects.filter(pk__in=published).values().get()

    result = cycle()

    assert (result.claimed, result.published, result.outage) == (0, 0, "")
    assert Outbox.objects.filter(pk__in=published).values().get() == before


def test_acknowledged_messages_are_marked_with_their_place(cycle):
    ids = record("a", count=3)

    result = cycle()

    assert (result.published, result.failed) == (3, 0)
    rows = list(Outbox.objects.filter(pk__in=ids).order_by("id"))
    assert all(row.published_at and row.published_partition == 0 for row in rows)
    offsets = [row.published_offset for row in rows]
    assert offsets == list(range(offsets[0], offsets[0] + 3))
    assert [topic for topic, _ in result.delays] == ["test"] * 3
    assert all(0 <= seconds < 60 for _, seconds in result.delays)


def test_refused_message_waits_with_its_key_and_the_others_go_on(cluster, cycle):
    refused, later, other = record("a"), record("a"), record("b")
    cluster.push_errors(PRODUCE, TOO_LARGE, TOO_LARGE)  # the request, then the first message alone

    result = cycle()

    assert (result.published, result.failed, result.parked) == (1, 1, 0)
    assert states(*refused, *later, *other) == ["waiting", "pending", "published"]
    row = Outbox.objects.get(pk__in=refused)
    assert (row.attempts, row.last_error) == (1, "MSG_SIZE_TOO_LARGE: Broker: Message size too large")
    assert row.next_attempt_at >= NOW + timedelta(seconds=1)
    assert cycle(row.next_attempt_at - timedelta(microseconds=1)).claimed == 0
    assert cycle(row.next_attempt_at).published == 2
    assert Outbox.objects.get(pk__in=refused).last_error == ""


@pytest.mark.parametrize(("attempts", "seconds"), [(0, 1), (1, 2), (2, 4), (4, 16), (5, 30), (8, 30)])
def test_back_off_doubles_up_to_half_a_minute(cycle, attempts, seconds):
    (message_id,) = record(headers=["unfit"], attempts=attempts)

    began = time.monotonic()
    cycle()

    assert seconds <= waits(message_id) <= seconds + time.monotonic() - began


def test_the_time_of_a_slow_broker_is_no_back_off(cluster, cycle):
    record("a")
    cluster.push_errors(PRODUCE, TOO_LARGE, TOO_LARGE)
    cluster.set_rtt(1, 150)
    began = time.monotonic()
    assert cycle().failed == 1
    took = timedelta(seconds=time.monotonic() - began)
    cluster.set_rtt(1, 0)

    assert took > timedelta(seconds=1)
    assert cycle(NOW + took).claimed == 0


def test_last_attempt_parks_and_the_key_goes_on(cycle, settings):
    settings.OUTBOX_MAX_ATTEMPTS = 3
    parked, later = record("a", headers=["unfit"], attempts=2), record("a")

    first, second = cycle(), cycle()

    assert (first.failed, first.parked, first.published) == (1, 1, 0)
    assert second.published == 1
    assert states(*parked, *later) == ["parked", "published"]
    row = Outbox.objects.get(pk__in=parked)
    assert (row.attempts, row.next_attempt_at) == (3, None)
    assert row.last_error == "the headers are not a JSON object of texts"


def test_denied_topic_spends_no_attempt(cluster, cycle):
    ids = record("a", attempts=9)
    cluster.push_errors(PRODUCE, DENIED)

    cycle()

    assert states(*ids) == ["waiting"]
    row = Outbox.objects.get(pk__in=ids)
    assert row.attempts == 9
    assert row.next_attempt_at >= NOW + timedelta(seconds=5)
    assert cycle(row.next_attempt_at).published == 1


def test_many_refusals_for_one_reason_are_one_line(cycle):
    for number in range(60):  # a cycle takes a part of the lanes: more than ten of these, fewer than all
        record(str(number), headers=[])
    with structlog.testing.capture_logs() as lines:
        failed = cycle().failed
    (line,) = (line for line in lines if line["event"] == "messages_failed")
    assert (line["topic"], line["count"], len(line["message_ids"])) == ("test", failed, 10)


def test_outage_changes_nothing(cluster, cycle, short_patience):
    ids = record("a", count=2, topic="silent")  # what is underway may arrive after the test
    before = list(Outbox.objects.order_by("id").values())
    cluster.set_rtt(1, 10_000)

    result = cycle()

    assert result.outage
    assert (result.claimed, result.published, result.failed) == (2, 0, 0)
    assert list(Outbox.objects.order_by("id").values()) == before
    cluster.set_rtt(1, 0)
    eventually(lambda: not cycle().claimed)  # with the short patience a loaded machine may need several
    assert set(states(*ids)) == {"published"}


def test_late_commit_goes_out(cycle):
    """Transaction A records and stays open, B records and commits, the relay runs, A commits."""
    insert = (
        "INSERT INTO promotion.outbox (event_type, aggregate_id, topic, key, payload)"
        " VALUES ('t', gen_random_uuid(), 'test', 'late', '{}') RETURNING id"
    )
    with other_connection() as link:
        (late,) = link.execute(insert).fetchone()
        (early,) = record("early")
        assert late < early
        assert cycle().published == 1
        link.commit()

    assert cycle().published == 1
    assert states(late, early) == ["published", "published"]


def test_cycle_refuses_to_stand_inside_a_transaction(cycle):
    with pytest.raises(RuntimeError), transaction.atomic():
        cycle()


@contextlib.contextmanager
def full_disk():
    """Refuse every mark, as a full disk or a long lock on the table does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION promotion.no_room() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$;"
            "CREATE TRIGGER no_room BEFORE UPDATE ON promotion.outbox EXECUTE FUNCTION promotion.no_room()"
        )
        try:
            yield
        finally:
            cursor.execute("DROP FUNCTION promotion.no_room() CASCADE")


def test_what_could_not_be_marked_is_marked_later_and_not_published_again(cycle):
    (first,) = record("a")
    cycle()
    ids = record("a", count=3)
    with full_disk():
        for _ in range(3):
            with pytest.raises(OperationalError):
                cycle()
    assert states(*ids) == ["pending"] * 3
    (later,) = record("a")

    assert cycle().published == 4

    rows = Outbox.objects.filter(pk__in=[first, *ids, later]).order_by("id")
    offsets = list(rows.values_list("published_offset", flat=True))
    assert offsets == list(range(offsets[0], offsets[0] + 5))  # a second copy would have taken a place in between


def test_what_another_relay_has_published_in_the_meantime_is_forgotten(cycle, publisher):
    (message,) = record("a")
    with full_disk(), pytest.raises(OperationalError):
        cycle()
    Outbox.objects.filter(pk=message).update(published_at=NOW)
    assert publisher.unmarked

    cycle()

    assert publisher.unmarked == {}
