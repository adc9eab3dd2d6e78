"""The command as a process: results, exit codes, and one clear line for each failure."""

import json

import pytest

from tests.messages import consume, record, states
from tests.programs import manage

pytestmark = pytest.mark.django_db(transaction=True)

AWAY = "127.0.0.1:1"


def result(done):
    return json.loads(done.stdout)


def last_line(done):
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.broker
def test_publishes_all_and_exits(topic):
    record("a", published_at="2026-01-01T00:00Z", topic=topic)
    ids = record("ключ", "значение ", topic=topic, count=3, headers={"ce_id": "1", "x": "ü\n鍵"})
    ids += record("b", '{"deep": [[1.0, "é"]]}', topic=topic)

    done = manage("relay_outbox", "--json")

    assert done.returncode == 0, done.stderr
    assert result(done) == {"published": 4, "failed": 0, "parked": 0, "pending": 0}
    assert set(states(*ids)) == {"published"}
    arrived = {record.value().decode(): record for record in consume(topic, 4)}
    assert set(arrived) == {"значение 0", "значение 1", "значение 2", '{"deep": [[1.0, "é"]]}'}
    first = arrived["значение 0"]
    assert first.key().decode() == "ключ"
    assert dict(first.headers()) == {"ce_id": b"1", "x": "ü\n鍵".encode()}
    assert arrived['{"deep": [[1.0, "é"]]}'].headers() is None


def test_nothing_to_publish_needs_no_broker():
    done = manage("relay_outbox", KAFKA_BOOTSTRAP_SERVERS=AWAY)

    assert (done.returncode, done.stdout) == (0, "published 0, failed 0, parked 0, pending 0\n")


def test_broker_away_is_exit_1_with_the_result():
    ids = record(count=2)

    done = manage("relay_outbox", "--json", KAFKA_BOOTSTRAP_SERVERS=AWAY)

    assert done.returncode == 1
    assert result(done) == {"published": 0, "failed": 0, "parked": 0, "pending": 2}
    assert "the broker could not be reached" in last_line(done)
    assert states(*ids) == ["pending", "pending"]


def test_pending_messages_are_exit_1_parked_ones_are_not(topic):
    record("a", topic=topic, headers=["unfit"])

    pending = manage("relay_outbox", "--json")
    record("b", topic=topic, headers=["unfit"], attempts=9)
    both = manage("relay_outbox", "--json")

    assert (pending.returncode, result(pending)) == (1, {"published": 0, "failed": 1, "parked": 0, "pending": 1})
    assert last_line(pending).endswith("1 messages are still pending")
    assert both.returncode == 1
    assert result(both)["parked"] == 1


def test_database_away_is_one_line_and_no_result():
    done = manage("relay_outbox", "--json", DATABASE_URL="postgres://x:x@127.0.0.1:1/x")

    assert (done.returncode, done.stdout) == (1, "")
    assert "the database failed" in last_line(done)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"KAFKA_BOOTSTRAP_SERVERS": ""}, "KAFKA_BOOTSTRAP_SERVERS is not set"),
        ({"KAFKA_SASL_MECANISM": "hunter2"}, "KAFKA_SASL_MECANISM"),
        ({"KAFKA_SECURITY_PROTOCOL": "hunter2"}, "KAFKA_SECURITY_PROTOCOL"),
        ({"KAFKA_SSL_CA_LOCATION": "/hunter2", "KAFKA_SECURITY_PROTOCOL": "ssl"}, "KAFKA_SSL_CA_LOCATION"),
        ({"KAFKA_SSL_KEY_PEM": "hunter2", "KAFKA_SECURITY_PROTOCOL": "ssl"}, "KAFKA_SSL_KEY_PEM"),
        ({"KAFKA_ACKS": "0", "KAFKA_SASL_PASSWORD": "hunter2"}, "KAFKA_ACKS cannot be changed"),
        ({"OUTBOX_BATCH_SIZE": "0"}, "OUTBOX_BATCH_SIZE"),
    ],
)
def test_bad_setting_is_exit_2_and_a_line_that_names_it(variables, named):
    done = manage("relay_outbox", **variables)

    assert done.returncode == 2
    assert named in last_line(done)
    assert "hunter2" not in done.stderr + done.stdout


@pytest.mark.parametrize("argument", ["--batch-size=0", "--batch-size=many", "--ops-port=70000", "--nonsense"])
def test_bad_argument_is_exit_2(argument):
    assert manage("relay_outbox", argument).returncode == 2
