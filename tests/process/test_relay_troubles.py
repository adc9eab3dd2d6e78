"""Whatever the broker's trouble: no attempt is spent on it, nothing is marked too early, and a stop ends the relay."""

import time

import pytest

from devstack.mock import PRODUCE
from outbox.draining import Relay
from outbox.models import Outbox
from outbox.publisher import Publisher
from tests.messages import record, states
from tests.process.test_relay_loop import LONGEST_TRANSACTION, STATED_GRACE, activity, relay
from tests.programs import eventually

pytestmark = pytest.mark.django_db(transaction=True)

DENIED, FENCED, NOT_ENOUGH_REPLICAS = 29, 47, 19


def away(cluster):
    cluster.set_down(1)


def slow(cluster):
    cluster.set_rtt(1, 3_000)


def without_a_leader(cluster):
    cluster.set_leader("test", 0, -1)


def denied(cluster):
    cluster.push_errors(PRODUCE, *[DENIED] * 200)


def short_of_replicas(cluster):
    cluster.push_errors(PRODUCE, *[NOT_ENOUGH_REPLICAS] * 2_000)


def fatal_for_producers(cluster):
    cluster.push_errors(PRODUCE, *[FENCED] * 200)


@pytest.mark.parametrize(
    "trouble", [away, slow, without_a_leader, denied, short_of_replicas, fatal_for_producers], ids=lambda t: t.__name__
)
def test_stop_in_a_trouble_and_recovery_from_it(cluster, no_stop, trouble):
    trouble(cluster)
    with relay(cluster) as program:
        ids = record("a", count=3) + record("b")
        program.wait_for("broker_failed|messages_failed|messages_published")
        oldest = max([0.0, *(age for _, age in activity("xact_start IS NOT NULL"))])
        began = time.monotonic()
        assert program.stop() == 0
        assert time.monotonic() - began < STATED_GRACE
    assert oldest < LONGEST_TRANSACTION
    assert trouble is slow or not set(states(*ids)) & {"published", "parked"}
    assert set(Outbox.objects.values_list("attempts", flat=True)) == {0}

    cluster.clear_errors(PRODUCE)
    cluster.set_up(1)
    cluster.set_rtt(1, 0)
    cluster.set_leader("test", 0, 1)
    another = Relay(Publisher(cluster.bootstrap, {}), stop=no_stop, batch_size=10)
    eventually(lambda: another.drain() and set(states(*ids)) == {"published"}, timeout=30)
    offsets = Outbox.objects.filter(key="a").order_by("id").values_list("published_offset", flat=True)
    assert list(offsets) == sorted(offsets)
