"""The looping relay as a real process: woken by commits, stopped by signals, through outages of both servers."""

import signal
import time

import pytest

from outbox.models import Outbox
from tests.connections import other_connection
from tests.messages import record, state, states
from tests.programs import Program, eventually, manage

pytestmark = pytest.mark.django_db(transaction=True)

STATED_GRACE = 10  # seconds
LONGEST_TRANSACTION = 15
LISTENING = "application_name = 'pinpromo-listen' AND state = 'idle'"


def relay(cluster=None, **variables):
    variables = {"OUTBOX_POLL_INTERVAL": 0.2} | variables
    if cluster:
        variables["KAFKA_BOOTSTRAP_SERVERS"] = cluster.bootstrap
    return Program("relay_outbox", "--loop", **variables)


def published(message_ids):
    return set(states(*message_ids)) == {"published"}


def works(key="k", *, topic):
    """Record a message, and fail unless it is published before a minute's tick would come."""
    ids = record(key, topic=topic)
    eventually(lambda: published(ids), timeout=20)


def activity(condition):
    """Return (pid, age of the transaction in seconds) of the sessions on this database."""
    with other_connection(autocommit=True) as link:
        return link.execute(
            "SELECT pid, coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::float FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            f" AND application_name LIKE 'pinpromo%%' AND {condition}"
        ).fetchall()


def test_commit_wakes_the_relay_and_a_lost_listening_connection_is_restored(topic):
    with relay(OUTBOX_POLL_INTERVAL=60) as program:
        (session,) = eventually(lambda: activity(LISTENING))
        time.sleep(1.5)  # the first tick is over; the next is a minute away
        works(topic=topic)

        with other_connection(autocommit=True) as link:
            link.execute("SELECT pg_terminate_backend(%s)", [session[0]])
        program.wait_for("listen_lost")
        eventually(lambda: activity(LISTENING))
        works(topic=topic)

        assert program.stop() == 0


def test_polling_goes_on_where_nothing_can_be_heard(topic):
    """A commit without its notification, as behind a pooler."""
    with relay() as program:
        works(topic=topic)
        with other_connection(autocommit=True) as link:
            link.execute("ALTER TABLE promotion.outbox DISABLE TRIGGER outbox_wake_relay")
            try:
                works(topic=topic)
            finally:
                link.execute("ALTER TABLE promotion.outbox ENABLE TRIGGER outbox_wake_relay")
        assert program.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_idle_relay_stops_at_once(number):
    with relay(OUTBOX_POLL_INTERVAL=60) as program:
        eventually(lambda: activity(LISTENING))
        began = time.monotonic()
        assert program.stop(number) == 0
        assert time.monotonic() - began < 5


def test_silent_broker_holds_no_transaction_for_long_and_no_stop_back(cluster):
    cluster.create_topic("silent", 1)
    with relay(cluster) as program:
        ids = record("a", topic="silent")
        eventually(lambda: published(ids))
        cluster.set_rtt(1, 60_000)
        held = record("b", topic="silent", count=3)

        oldest, until = 0.0, time.monotonic() + 12
        while time.monotonic() < until:
            oldest = max([oldest, *(age for _, age in activity("xact_start IS NOT NULL"))])
            time.sleep(0.1)
        program.wait_for("broker_failed")
        late = record("c", topic="silent")
        began = time.monotonic()
        code = program.stop()
        took = time.monotonic() - began

    assert 1 < oldest < LONGEST_TRANSACTION
    assert (code, took < STATED_GRACE + 5) == (0, True)
    assert states(*held, *late) == ["pending"] * 4
    assert set(Outbox.objects.filter(pk__in=held).values_list("attempts", flat=True)) == {0}


def test_stop_in_the_middle_of_a_batch_ends_within_the_grace(cluster):
    cluster.create_topic("silent", 1)
    with relay(cluster) as program:
        works("a", topic="silent")
        cluster.set_rtt(1, 60_000)
        held = record("b", topic="silent")
        eventually(lambda: [age for _, age in activity("xact_start IS NOT NULL") if age > 0.5])
        began = time.monotonic()

        assert program.stop() == 0

        assert time.monotonic() - began < STATED_GRACE
        assert states(*held) == ["pending"]


def test_broker_that_was_never_there_is_told_once_and_awaited(cluster, topic):
    cluster.set_down(1)
    with relay(cluster) as program:
        ids = record("a")
        program.wait_for("broker_failed")
        time.sleep(3)
        assert not activity("xact_start IS NOT NULL")
        assert program.count("broker_failed") == 1
        assert program.process.poll() is None
        cluster.set_up(1)
        eventually(lambda: published(ids), timeout=30)
        program.wait_for("broker_recovered")
        assert program.stop() == 0


def test_killed_relay_frees_its_messages_at_once(cluster, topic):
    cluster.create_topic("silent", 1)
    with relay(cluster) as program:
        works("a", topic="silent")
        cluster.set_rtt(1, 60_000)
        (held,) = record("b", topic="silent")
        eventually(lambda: [age for _, age in activity("xact_start IS NOT NULL") if age > 0.5])
        program.signal(signal.SIGKILL)
        program.wait()
    Outbox.objects.filter(pk=held).update(topic=topic)

    assert manage("relay_outbox").returncode == 0
    assert state(held) == "published"
