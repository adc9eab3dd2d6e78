"""A consuming team's program: the boosts of one kind of target, kept in a file together with the offsets.

`python -m chaos.consumer BOOTSTRAP KIND FILE`. Messages and offsets are committed in one transaction of SQLite, so a
SIGKILL loses nothing and repeats nothing; duplicates and late comers are dropped by event id and version, as the
event's contract says.
"""

import json
import logging
import sqlite3
import sys
import time
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

TOPIC = "pin.promotion.purchase-changed.v1"

SCHEMA = """
CREATE TABLE IF NOT EXISTS offsets (number INTEGER PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS purchases (id TEXT PRIMARY KEY, version INTEGER NOT NULL, status TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS boosts (purchase TEXT, target TEXT, PRIMARY KEY (purchase, target));
"""


def main() -> None:
    """Consume for ever, through every outage of the broker."""
    logging.disable(logging.CRITICAL)
    bootstrap, kind, path = sys.argv[1:]
    store = sqlite3.connect(path, isolation_level=None)
    store.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;" + SCHEMA)
    while True:
        try:
            _consume(bootstrap, kind, store)
        except KafkaError:
            time.sleep(0.5)


def _consume(bootstrap: str, kind: str, store: sqlite3.Connection) -> None:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    try:
        partitions = [TopicPartition(TOPIC, number) for number in consumer.partitions_for_topic(TOPIC) or ()]
        if not partitions:
            return
        consumer.assign(partitions)
        known = dict(store.execute("SELECT number, next FROM offsets"))
        for partition in partitions:
            consumer.seek(partition, known.get(partition.partition, 0))
        while True:
            batches = consumer.poll(timeout_ms=500)
            if batches:
                store.execute("BEGIN IMMEDIATE")
                for messages in batches.values():
                    for message in messages:
                        take(store, kind, json.loads(message.value))
                        store.execute(
                            "INSERT INTO offsets VALUES (?, ?) ON CONFLICT (number) DO UPDATE SET next = excluded.next",
                            (message.partition, message.offset + 1),
                        )
                store.execute("COMMIT")
    finally:
        if store.in_transaction:
            store.execute("ROLLBACK")
        consumer.close()


def take(store: sqlite3.Connection, kind: str, event: dict[str, Any]) -> None:
    """Apply one event to the boosts of this kind of target."""
    if store.execute("INSERT OR IGNORE INTO events VALUES (?)", (event["eventId"],)).rowcount == 0:
        return
    purchase, version = event["purchaseId"], event["version"]
    held = store.execute("SELECT version FROM purchases WHERE id = ?", (purchase,)).fetchone()
    if held and held[0] >= version:
        return
    store.execute("INSERT OR REPLACE INTO purchases VALUES (?, ?, ?)", (purchase, version, event["status"]))
    store.execute("DELETE FROM boosts WHERE purchase = ?", (purchase,))
    if event["status"] == "Active":
        for target in event["targets"]:
            if target["targetType"] == kind:
                store.execute("INSERT OR IGNORE INTO boosts VALUES (?, ?)", (purchase, target["targetId"]))


if __name__ == "__main__":
    main()
