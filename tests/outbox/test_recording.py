"""The only door into the outbox: what it refuses, and what it keeps exactly as it is."""

import uuid

import pytest
from django.db import connection, transaction

from outbox.models import Outbox
from outbox.recording import MAX_BYTES, Message, NotInTransaction, NotRecorded, UnfitMessage, record

pytestmark = pytest.mark.django_db

FIELDS = {"event_type": "Tested", "topic": "t", "key": "k", "payload": "{}"}


def make(**changes):
    return Message(**{"aggregate_id": uuid.uuid4(), **FIELDS, **changes})


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(("hostile", "word"), [("a\0b", "NUL"), ("a\ud800b", "surrogate"), ("\udfff", "surrogate")])
def test_what_cannot_be_stored_or_sent_is_refused_with_the_reason(name, hostile, word):
    with pytest.raises(UnfitMessage, match=word):
        make(**{name: hostile})


@pytest.mark.parametrize("headers", [{"n": "a\0"}, {"a\0": "v"}, {"n": "\ud800"}, {"\ud800": "v"}])
def test_headers_are_looked_at_too(headers):
    with pytest.raises(UnfitMessage, match=r"NUL|surrogate"):
        make(headers=headers)


def test_size_is_counted_in_bytes_over_all_parts():
    rest = len("".join(FIELDS.values())) - len("{}") + len("né")  # é has two bytes
    fits = make(payload="ж" * ((MAX_BYTES - rest - 1) // 2), headers={"n": "é"})

    with pytest.raises(UnfitMessage, match="bytes"):
        make(payload=fits.payload + "жж", headers={"n": "é"})


def test_refusal_quotes_nothing_of_the_message():
    for payload in ("secret\0", "secret\ud800", "secret" * 200_000):
        with pytest.raises(UnfitMessage) as refusal:
            make(payload=payload)
        assert "secret" not in str(refusal.value)


def test_messages_are_kept_as_they_are_and_in_their_order():
    odd = ['tab\t, \\N, \\., "quotes"', "line\nbreak\r\n", "\\", "😀 ж 鍵 \u2028 \x01\x7f", "", " "]
    messages = [make(key=text, payload=text, headers={f"h{text}": text}) for text in odd]

    record(messages)

    rows = Outbox.objects.order_by("id")
    assert [(row.event_id, row.key, row.payload, row.headers) for row in rows] == [
        (message.event_id, message.key, message.payload, message.headers) for message in messages
    ]
    assert {(row.attempts, row.last_error, row.published_at, row.next_attempt_at) for row in rows} == {
        (0, "", None, None)
    }


def test_nothing_to_record_is_no_error():
    record([])


@pytest.mark.django_db(transaction=True)
def test_recording_outside_a_transaction_is_refused():
    with pytest.raises(NotInTransaction, match="transaction"):
        record([make()])
    assert not Outbox.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_messages_go_with_their_transaction():
    with transaction.atomic():
        record([make()])
        transaction.set_rollback(True)
    assert not Outbox.objects.exists()


def test_message_that_the_database_swallows_is_noticed():
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION pg_temp.swallow() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN IF NEW.key = 'gone' THEN RETURN NULL; END IF; RETURN NEW; END $$;"
            "CREATE TRIGGER swallow BEFORE INSERT ON promotion.outbox FOR EACH ROW EXECUTE FUNCTION pg_temp.swallow()"
        )
    with pytest.raises(NotRecorded):
        record([make(), make(key="gone")])
