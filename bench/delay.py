"""From commit to acknowledgement, of a relay that has nothing else to do: its own loop, in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg

from bench import world
from bench.figures import Figure
from bench.measure import Sample
from bench.messages import FILL, TOPIC, settle
from devstack.mock import MockCluster
from devstack.program import manage

DATABASE = "delay"
APART = 0.047  # seconds between two messages: the relay is asleep again, and no beat with its poll of a second


def measure(url: str, *, messages: int) -> Iterator[Figure]:
    """Yield the median and the 99th percentile."""
    world.create(DATABASE)
    url = world.url_of(url, DATABASE)
    with MockCluster() as broker, psycopg.connect(url) as link:
        broker.create_topic(TOPIC, 4)
        environ = {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap, "DATABASE_URL": url}
        with manage("relay", "relay_outbox", "--loop", environ=environ) as relay:
            _await_relay(link)
            settle()
            committed = [_commit_one(link) for _ in range(messages)]
            time.sleep(2)
            relay.stop()
        acknowledged = link.execute("SELECT extract(epoch FROM published_at)::float8 FROM promotion.outbox ORDER BY id")
        ends = [instant for (instant,) in acknowledged.fetchall()][-messages:]
    sent = Sample([end - sent for (sent, _), end in zip(committed, ends, strict=True)])
    delays = Sample([end - done for (_, done), end in zip(committed, ends, strict=True)])
    detail = f"of {messages} messages; from the sending of COMMIT, with its fsync, {{:.1f}} ms"
    for name, must, aim, value, with_commit in (
        ("median", 5, None, delays.median, sent.median),
        ("p99", 25, 10, delays.percentile(99), sent.percentile(99)),
    ):
        label = f"commit to acknowledgement, idle relay, {name}"
        yield Figure(label, value * 1e3, must, aim, "COMMIT has returned", detail.format(with_commit * 1e3), unit=" ms")


def _await_relay(link: psycopg.Connection) -> None:
    """Let the relay publish something, so that nothing is done for the first time later."""
    for _ in range(20):
        _commit_one(link)
    while link.execute("SELECT FROM promotion.outbox WHERE published_at IS NULL LIMIT 1").fetchall():
        link.commit()
        time.sleep(0.1)
    link.commit()
    time.sleep(2)


def _commit_one(link: psycopg.Connection) -> tuple[float, float]:
    """Record a message; return when COMMIT was sent and when it was done, in seconds of the wall clock."""
    time.sleep(APART)
    link.execute(FILL.format(published="NULL"), {"count": 1})
    sent = time.time()
    link.commit()
    return sent, time.time()
