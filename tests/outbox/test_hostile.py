"""Whatever the contents: published unchanged, or refused clearly when recorded; the relay is never stuck."""

import os
import uuid
from collections import Counter

import pytest
from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from outbox import recording
from outbox.draining import Relay
from outbox.models import Outbox
from outbox.publisher import Publisher
from outbox.recording import MAX_BYTES, Message, UnfitMessage
from tests.messages import consume, record, states

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.broker]

# Also what no UTF-8 can express: lone surrogates, which Hypothesis leaves out by itself.
TEXTS = st.one_of(st.text(), st.text(st.characters(codec=None, categories=["L", "Cc", "Cs", "Zs", "So"])))
HEADERS = st.dictionaries(TEXTS, TEXTS, max_size=4)


@pytest.fixture
def drain(no_stop):
    publisher = Publisher(os.environ["KAFKA_BOOTSTRAP_SERVERS"], {})
    return Relay(publisher, stop=no_stop, batch_size=100).drain


def unfit(*texts):
    joined = "".join(texts)
    return "\0" in joined or any("\ud800" <= letter <= "\udfff" for letter in joined) or len(joined) > MAX_BYTES / 4


def test_contents_arrive_unchanged_or_are_refused_when_recorded(topic, drain):
    recorded, refused = [], []

    @settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(TEXTS, TEXTS, HEADERS)
    @example("k", "x" * 1_000_000, {})
    @example("k", "ж" * 440_000, {})  # 880,000 bytes
    @example("k", "[" * 200_000 + "]" * 200_000, {})
    @example("ключ 鍵 مفتاح", "{}", {"h": "line\r\nbreak\n", "": "no name", "é": ""})
    @example("", "", {})
    @example("k", "{}", {"h": "x" * 500_000})
    @example("x" * 300_000, "\\N\t\\.\n", {})
    def offer(key, payload, headers):
        try:
            message = Message(
                event_type="t", aggregate_id=uuid.uuid4(), topic=topic, key=key, payload=payload, headers=headers
            )
        except UnfitMessage:
            assert unfit(key, payload, *headers, *headers.values())
            refused.append(key)
            return
        with transaction.atomic():
            recording.record([message])
        recorded.append(message)

    offer()
    assert drain()

    assert refused
    assert not Outbox.objects.filter(published_at=None).exists()
    arrived = [(r.key() or b"", r.value() or b"", frozenset(r.headers() or [])) for r in consume(topic, len(recorded))]
    assert Counter(arrived) == Counter(
        (m.key.encode(), m.payload.encode(), frozenset((n, v.encode()) for n, v in m.headers.items())) for m in recorded
    )


def test_what_plain_sql_may_write_holds_up_nothing_and_shows_nowhere(topic, drain, capfd):
    """Past the door: each of these has its own key, and `secret` in every part."""
    hostile = [
        record("secret 1", "secret" * 300_000, topic=topic),
        record("secret 2", "secret", topic=topic, headers=["secret"]),
        record("secret 3", "secret", topic=topic, headers={"secret": None}),
        record("secret 4", "secret", topic=topic, headers="secret"),
        record("secret 5", "secret", topic="secret topic!"),
        record("secret 6", "secret", topic=topic, headers={"secret": "secret" * 200_000}),
        record("secret 7", "secret", topic="secret" * 100),
        record("secret 8", "secret", topic=""),
    ]
    free = record("free", topic=topic, count=3)

    drain()

    assert set(states(*free)) == {"published"}
    for (message_id,) in hostile:
        row = Outbox.objects.get(pk=message_id)
        assert (row.published_at, row.attempts) == (None, 1)
        assert row.last_error
        assert "secret" not in row.last_error
    told = capfd.readouterr()
    assert "secret" not in (told.out + told.err).replace("secret topic!", "").replace("secret" * 100, "")
