"""Purchases, cancels, cycles, poison, healing, crashes and relays in any order, beside a plain model.

FUZZ_EXAMPLES says how many histories are played (`make fuzz`: many); in the suite a few.
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from outbox.publisher import Publisher
from tests.fuzz.machine import Promotions, told_by
from tests.messages import consume, values_by_key

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "20"))

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.broker, pytest.mark.timeout(0)]


@pytest.fixture
def machine(topic, no_stop, monkeypatch):
    """The machine, whose events go to a topic of its own."""
    monkeypatch.setattr("promotion.events.TOPIC", topic)
    publisher = Publisher(os.environ["KAFKA_BOOTSTRAP_SERVERS"], {})
    publisher.probe()
    return type("Promotions", (Promotions,), {"publisher": publisher, "stop": no_stop, "published": {}})


def test_any_history(machine, topic):
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=25, deadline=None,
            suppress_health_check=list(HealthCheck), database=None,
        ),
    )  # fmt: skip
    expected = machine.published
    arrived = values_by_key(consume(topic, sum(map(len, expected.values())), linger=1, timeout=60 + EXAMPLES))
    first_times = {key: list(dict.fromkeys(map(told_by, values))) for key, values in arrived.items()}
    assert first_times == expected
