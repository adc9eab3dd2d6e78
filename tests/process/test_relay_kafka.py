"""The relay against a real Apache Kafka: TLS and a login, a kill in the middle of the flow, topics that refuse."""

import json
import subprocess

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
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


ACCESS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # whoever comes in by INTERNAL
}


@pytest.fixture(scope="module")
def kafka(certificate):
    """It makes no topics by itself, and lets the user `relay` do everything that is not denied."""
    tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificate / "both.pem")}
    properties = tls | ACCESS | {"auto.create.topics.enable": "false"}
    with EmbeddedKafka(protocol="SASL_SSL", users={"relay": "hunter2"}, properties=properties) as kafka:
        create_topic(kafka.internal, "test", 3)
        permit(kafka, "*", AclOperation.ALL, AclPermissionType.ALLOW)
        yield kafka


def permit(kafka, topic, operation, permission):
    """Allow the relay's user to do something with a topic, or deny it."""
    subject = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:relay", "*", operation, permission)
    admin = AdminClient({"bootstrap.servers": kafka.internal})
    (done,) = admin.create_acls([AclBinding(*subject)]).values()
    done.result(10)


def forget(kafka, topic):
    """Take back all that was said of a topic."""
    any_one = (None, None, AclOperation.ANY, AclPermissionType.ANY)
    chosen = AclBindingFilter(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, *any_one)
    admin = AdminClient({"bootstrap.servers": kafka.internal})
    (done,) = admin.delete_acls([chosen]).values()
    done.result(10)


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


@pytest.mark.parametrize("right", [AclOperation.WRITE, AclOperation.ALL])
def test_topic_that_may_not_be_written_waits_without_an_attempt(kafka, login, right):
    topic = f"secret-{right.name.lower()}"
    create_topic(kafka.internal, topic, 3)
    permit(kafka, topic, right, AclPermissionType.DENY)
    denied = record("a", topic=topic, count=3) + record("b", topic=topic)
    free = record("a free one")

    done = manage("relay_outbox", "--json", **login)

    assert (done.returncode, json.loads(done.stdout)["pending"]) == (1, 4)
    assert (states(*denied), states(*free)) == (["waiting", "pending", "pending", "waiting"], ["published"])
    rows = Outbox.objects.filter(pk__in=denied).order_by("id")
    assert set(rows.values_list("attempts", flat=True)) == {0}
    assert rows[0].last_error == "TOPIC_AUTHORIZATION_FAILED: Broker: Topic authorization failed"
    forget(kafka, topic)
    with Program("relay_outbox", "--loop", OUTBOX_POLL_INTERVAL=0.2, **login) as relay:
        eventually(lambda: set(states(*denied)) == {"published"})
        assert relay.stop() == 0
    assert values_by_key(consume(topic, 4, bootstrap=kafka.internal))["a"] == ["{}0", "{}1", "{}2"]


def test_nothing_overtakes_a_refused_message(kafka, login):
    """Each message goes in a request of its own, and this producer is new to every partition."""
    limited = NewTopic("tiny", num_partitions=3, replication_factor=1, config={"max.message.bytes": "400"})
    admin = AdminClient({"bootstrap.servers": kafka.internal})
    admin.create_topics([limited])["tiny"].result(10)
    keys = [f"key {number}" for number in range(20)]
    large = [message for key in keys for message in record(key, "x" * 1_000, topic="tiny")]
    small = [message for key in keys for message in record(key, topic="tiny", count=3)]

    done = manage("relay_outbox", "--json", KAFKA_LINGER_MS=0, KAFKA_BATCH_NUM_MESSAGES=1, **login)

    assert done.returncode == 1
    assert set(states(*large)) == {"waiting"}
    assert set(states(*small)) == {"pending"}
    assert not consume("tiny", 0, bootstrap=kafka.internal)
