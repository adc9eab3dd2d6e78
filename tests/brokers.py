"""A broker that fails as it is told, and publishers for it."""

import os
import uuid

import pytest

from devstack.broker import create_topic
from devstack.mock import INIT_PRODUCER_ID, METADATA, PRODUCE, MockCluster
from outbox import publisher as publisher_module
from outbox.publisher import Publisher


class NoStop:
    """What the publisher looks at between two moments: nobody wants it to stop."""

    requested = False
    hurried = False


@pytest.fixture
def topic():
    """A topic of its own, with three partitions, in the broker of the environment."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    create_topic(os.environ["KAFKA_BOOTSTRAP_SERVERS"], name, 3)
    return name


@pytest.fixture(scope="session")
def _cluster():
    with MockCluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(_cluster):
    """A mock cluster of one broker, in order again for each test."""
    for topic in ("test", "other"):
        _cluster.create_topic(topic, 1)
    yield _cluster
    _cluster.set_up(1)
    _cluster.set_rtt(1, 0)
    for topic in ("test", "other"):
        _cluster.topic_error(topic, 0)
        _cluster.set_leader(topic, 0, 1)
    for api_key in (PRODUCE, METADATA, INIT_PRODUCER_ID):
        _cluster.clear_errors(api_key)


@pytest.fixture
def short_patience(monkeypatch):
    """A second instead of seven, so that tests of silence are quick."""
    monkeypatch.setattr(publisher_module, "DELIVERY_SECONDS", 1.0)
    monkeypatch.setattr(publisher_module, "PUBLISH_SECONDS", 1.5)
    monkeypatch.setattr(publisher_module, "PROBE_SECONDS", 0.5)


@pytest.fixture
def publisher(cluster):
    """It hands each batch over as one request, however slow the machine is: nothing is sent before the flush."""
    publisher = Publisher(cluster.bootstrap, {"linger.ms": "500"})
    publisher.probe()
    return publisher


@pytest.fixture
def no_stop():
    return NoStop()
