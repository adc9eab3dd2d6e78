"""Several relays at once: the order of each key holds, whatever dies; and without faults nothing goes twice.

SCALE multiplies the rows, for the long form.
"""

import os
import random
import signal
import time
from contextlib import ExitStack

import pytest

from outbox.models import Outbox
from tests.messages import consume, values_by_key
from tests.programs import Program, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.broker]

SCALE = int(os.environ.get("SCALE", "1"))
KEYS = 200
EACH = 50 * SCALE
KILLS = 5  # each when another part of the rows is published
HOT = KEYS * EACH  # one key has half of all rows


def record_many(topic):
    """Write the events of all keys, those of different keys mixed; return the values expected of each key."""
    keys = [f"key {number}" for number in range(KEYS)] * EACH + ["hot"] * HOT
    random.Random(7).shuffle(keys)
    expected = {}
    for key in keys:
        values = expected.setdefault(key, [])
        values.append(str(len(values)))
    positions = dict.fromkeys(expected, 0)
    rows = []
    for key in keys:
        rows.append(_row(topic, key, expected[key][positions[key]]))
        positions[key] += 1
    Outbox.objects.bulk_create(rows, batch_size=2_000)
    return expected


def _row(topic, key, value):
    return Outbox(event_type="t", aggregate_id="0" * 32, topic=topic, key=key, payload=value)


def first_occurrences(values):
    return list(dict.fromkeys(values))


def all_published():
    return not Outbox.objects.pending().exists()


def test_without_faults_each_message_goes_once_and_in_order(topic):
    expected = record_many(topic)
    with ExitStack() as programs:
        relays = [programs.enter_context(Program("relay_outbox", "--json")) for _ in range(3)]
        codes = [relay.wait(timeout=120) for relay in relays]

    assert codes == [0, 0, 0], [relay.lines[-3:] for relay in relays]
    assert values_by_key(consume(topic, 2 * HOT, timeout=60)) == expected


def test_killed_relays_leave_duplicates_but_no_inversion_and_no_gap(topic):
    expected = record_many(topic)
    choose = random.Random()
    with ExitStack() as programs:

        def start():
            return programs.enter_context(
                Program("relay_outbox", "--loop", "--batch-size", 200, OUTBOX_POLL_INTERVAL=0.1)
            )

        relays = [start() for _ in range(3)]
        for kill in range(KILLS):
            after = (kill + 1) * HOT * 2 // (KILLS + 2)
            eventually(lambda after=after: Outbox.objects.published().count() > after, every=0.1)
            victim = choose.randrange(3)
            time.sleep(choose.uniform(0, 0.1))
            relays[victim].signal(signal.SIGKILL)
            relays[victim] = start()
        eventually(all_published)
        codes = [relay.stop() for relay in relays]

    assert codes == [0, 0, 0]
    arrived = values_by_key(consume(topic, 2 * HOT, timeout=60, linger=1))
    assert {key: first_occurrences(values) for key, values in arrived.items()} == expected
