"""Draining through an outage of the broker: nothing held, little said, back by itself."""

import time

import pytest
from structlog.testing import capture_logs

from outbox.draining import LONGEST_BACK_OFF, Relay
from outbox.publisher import Publisher
from tests.messages import record, states

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def relay(cluster, no_stop, short_patience):
    return Relay(Publisher(cluster.bootstrap, {}), stop=no_stop, batch_size=10)


def drain_again(relay):
    """Drain when the back-off is over."""
    deadline = time.monotonic() + 30
    while not relay.drain():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_everything_goes_in_as_many_cycles_as_it_takes(relay):
    ids = record("a", count=25)

    assert relay.drain()

    assert set(states(*ids)) == {"published"}


def test_no_query_is_made_while_the_broker_is_away(relay, cluster, django_assert_num_queries):
    ids = record("a")
    cluster.set_down(1)

    with django_assert_num_queries(0), capture_logs() as logs:
        began = time.monotonic()
        outcomes = []
        while time.monotonic() - began < 2.5:
            outcomes.append(relay.drain())
            time.sleep(0.01)

    assert not any(outcomes)
    assert [line["event"] for line in logs] == ["broker_failed"]
    assert states(*ids) == ["pending"]


def test_pauses_between_two_probes_grow(relay, cluster, monkeypatch):
    """At most after 0.25, 0.75, 1.75 and 3.75 seconds, at least after half of that."""
    monkeypatch.setattr("outbox.publisher.PROBE_SECONDS", 0.02)
    cluster.set_down(1)
    probes, probe = [], relay._publisher.probe
    monkeypatch.setattr(relay._publisher, "probe", lambda: probes.append(1) or probe())

    began = time.monotonic()
    while time.monotonic() - began < 3:
        relay.drain()
        time.sleep(0.01)

    assert 2 <= len(probes) <= 6


def test_broker_that_comes_back_is_found_by_itself(relay, cluster):
    ids = record("a", attempts=3)
    cluster.set_down(1)
    assert not relay.drain()
    cluster.set_up(1)

    with capture_logs() as logs:
        drain_again(relay)

    assert states(*ids) == ["published"]
    assert "broker_recovered" in [line["event"] for line in logs]
    assert LONGEST_BACK_OFF <= 5


def test_broker_that_falls_silent_in_the_middle_spends_no_attempt(relay, cluster):
    ids = record("a", count=5, topic="silent")
    assert relay.drain()
    ids += record("a", count=5, topic="silent")
    cluster.set_rtt(1, 10_000)

    assert not relay.drain()

    assert states(*ids) == ["published"] * 5 + ["pending"] * 5
    cluster.set_rtt(1, 0)
    drain_again(relay)
    assert states(*ids) == ["published"] * 10
