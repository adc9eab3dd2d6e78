"""The relay against a real Apache Kafka: TLS and a login, a kill in the middle of the flow, topics that refuse."""

import json
import subprocess

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devstack.broker import create_topic
from devstack.kafka import EmbeddedKafka
from outbox.models import Outbox
from tests.messages import consume, record, state, states, values_by_key
from tests.programs import Program, eventually, manage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kafka]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return folder


@pytest.fixture(scope="module")
def kafka(certificate):
    tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificate / "both.pem")}
    properties = tls | {"auto.create.topics.enable": "false"}
    with EmbeddedKafka(protocol="SASL_SSL", users={"relay": "hunter2"}, properties=properties) as kafka:
        create_topic(kafka.internal, "test", 3)
        yield kafka


@pytest.fixture
def login(kafka, certificate):
    return {
        "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap,
        "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "KAFKA_SASL_USERNAME": "relay",
        "KAFKA_SASL_PASSWORD": "hunter2",
        "KAFKA_SSL_CA_LOCATION": certificate / "cert.pem",
    }


def test_tls_and_scram_come_from_the_environment(login):
    ids = record("login", count=3)

    wrong = manage("relay_outbox", "--json", **login | {"KAFKA_SASL_PASSWORD": "hunter3"})
    right = manage("relay_outbox", "--json", **login)

    assert (wrong.returncode, json.loads(wrong.stdout)["pending"]) == (1, 3)
    assert right.returncode == 0
    assert set(states(*ids)) == {"published"}
    assert "hunter" not in wrong.stderr + right.stderr


def test_killed_broker_loses_nothing_and_is_found_again(kafka, login):
    with Program("relay_outbox", "--loop", OUTBOX_POLL_INTERVAL=0.2, **login) as relay:
        ids = record("kill", "a", count=200)
        eventually(lambda: set(states(*ids)) == {"published"})
        kafka.kill()
        ids += record("kill", "b", count=200)
        relay.wait_for("broker_failed")
        assert set(Outbox.objects.pending().values_list("attempts", flat=True)) == {0}
        kafka.start()
        eventually(lambda: set(states(*ids)) == {"published"})
        relay.wait_for("broker_recovered")
        assert relay.stop() == 0

    arrived = values_by_key(consume("test", 400, bootstrap=kafka.internal))["kill"]
    expected = [f"a{number}" for number in range(200)] + [f"b{number}" for number in range(200)]
    assert list(dict.fromkeys(arrived)) == expected


def test_too_large_and_unknown_topics_end_parked_and_the_rest_goes_out(kafka, login):
    limited = NewTopic("small", num_partitions=1, replication_factor=1, config={"max.message.bytes": "2000"})
    admin = AdminClient({"bootstrap.servers": kafka.internal})
    admin.create_topics([limited])["small"].result(10)
    large = record("large", "x" * 5_000, topic="small", attempts=9)
    small = record("small", "y" * 500, topic="small", count=20)  # together more than the topic takes
    unknown = record("unknown", topic="no-such-topic", attempts=9)
    impossible = record("impossible", topic="no such topic!", attempts=9)
    nameless = record("nameless", topic="", attempts=9)
    free = record("free")

    done = manage("relay_outbox", "--json", **login)

    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {"published": 21, "failed": 4, "parked": 4, "pending": 0}
    assert states(*large, *unknown, *impossible, *nameless) == ["parked"] * 4
    assert set(states(*small, *free)) == {"published"}
    assert state(free[0]) == "published"
