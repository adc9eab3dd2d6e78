import os

import pytest

from devstack import kafka_install
from devstack.broker import create_topic
from devstack.errors import ServerFailedError
from devstack.kafka import EmbeddedKafka, missing
from tests.devstack.survivors import assert_gone, family
from tests.devstack.test_broker import MESSAGES, consume, publish


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "this is missing: Java 17 or newer and Maven 3 (mvn)" in missing()
    pretend_java(tmp_path, "11.0.2")
    assert "this is missing: Java 17 or newer (there is 11) and Maven" in missing()
    pretend_java(tmp_path, "21.0.1")
    assert "this is missing: Maven 3" in missing()
    (tmp_path / "pinpromo" / f"kafka-{kafka_install.VERSION}").mkdir(parents=True)
    assert missing() is None  # what has been downloaded needs no Maven


def pretend_java(folder, version):
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)


@pytest.mark.kafka
def test_a_restart_and_a_kill_keep_the_messages():
    before = set(family())
    with EmbeddedKafka() as kafka:
        started, folder, bootstrap = set(family()) - before, kafka.guarded.path, kafka.bootstrap
        create_topic(bootstrap, "topic", 3)
        publish(bootstrap, "topic", MESSAGES[:10])
        kafka.restart()
        publish(bootstrap, "topic", MESSAGES[10:])
        kafka.kill()
        kafka.start()
        assert kafka.bootstrap == bootstrap
        assert sorted(consume(bootstrap, "topic", 20)) == sorted(MESSAGES)
    assert_gone(started, [folder], seconds=0)


@pytest.mark.kafka
def test_scram_users_and_overridden_properties():
    users, properties = {"alice": "secret"}, {"auto.create.topics.enable": "false"}
    with EmbeddedKafka(protocol="SASL_PLAINTEXT", users=users, properties=properties) as kafka:
        create_topic(kafka.internal, "topic", 1)
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "alice"}
        assert publish(kafka.bootstrap, "topic", MESSAGES, **login, **{"sasl.password": "secret"}) == [0] * 20
        timeout = {"message.timeout.ms": 3000, "error_cb": lambda error: None}
        assert publish(kafka.internal, "unknown", MESSAGES[:1], **timeout)[0].code() < 0
        wrong = publish(kafka.bootstrap, "topic", MESSAGES[:1], **login, **timeout, **{"sasl.password": "wrong"})
        assert wrong[0].code() < 0


@pytest.mark.kafka
def test_a_wrong_property_is_reported_with_kafkas_words():
    with pytest.raises(ServerFailedError, match="Invalid value x for configuration"):
        EmbeddedKafka(properties={"node.id": "x"}).start()


@pytest.mark.kafka
def test_this_run_uses_a_real_kafka():
    topic = f"appears-by-itself-{os.urandom(4).hex()}"
    assert publish(os.environ["KAFKA_BOOTSTRAP_SERVERS"], topic, MESSAGES[:1]) == [0]
