"""`python -m devstack demo`: the whole system at work on throw-away servers, which checks itself at the end."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime

import psycopg

from devstack import dataset, report, stack
from devstack.boosts import TOPIC, BoostConsumer
from devstack.broker import create_topic
from devstack.errors import DevstackError
from devstack.program import Program, manage, manage_to_end

SEED = 20260101
INTERVAL = 1.0  # seconds; in production it is 60
WORKERS = 2
PARTITIONS = 4
PATIENCE = 60.0  # seconds until the demonstration gives up

_STATE = """
SELECT (SELECT count(*) FROM promotion.promotion_purchases WHERE id = ANY(%(ids)s) AND status = 'Expired'),
       (SELECT count(*) FROM promotion.promotion_purchases WHERE id = ANY(%(ids)s) AND status = 'Active'
                                                             AND ends_at <= now()),
       (SELECT count(*) FROM promotion.outbox WHERE published_at IS NULL AND parked_at IS NULL),
       (SELECT count(*) FROM promotion.outbox WHERE published_at IS NOT NULL)
"""


def demo(*, seed: int = SEED) -> int:
    """Run it; the exit code: 0 if everything that was promised came true."""
    began = time.monotonic()
    with ExitStack() as running:
        say = report.Reporter()
        say.step("starting PostgreSQL and a Kafka-protocol broker")
        servers = running.enter_context(stack.running())
        say.done(f"PostgreSQL: {servers.database}; broker: {servers.broker}")
        environ = {
            **servers.variables,
            "EXPIRE_PROMOTIONS_MIN_INTERVAL": str(INTERVAL),
            "EXPIRE_PROMOTIONS_INTERVAL": str(INTERVAL),
        }
        whole = {**os.environ, **environ}
        database, bootstrap = whole[stack.DATABASE], whole[stack.BROKER]
        say.step("creating the tables")
        manage_to_end("migrate", environ=environ)
        create_topic(bootstrap, TOPIC, PARTITIONS)
        purchases = _load(database, seed)
        say.done(report.describe(purchases))
        consumer = running.enter_context(BoostConsumer(bootstrap))
        programs = [running.enter_context(program) for program in _programs(environ)]
        say.done(f"{WORKERS} expiry workers (a tick every {INTERVAL:g} s), a relay and a consumer are running")
        _watch(database, purchases, consumer, programs, say)
        for program in programs:
            program.stop()
        cycles = [cycle for program in programs[:WORKERS] for cycle in program.results()]
        outcome = report.judge(database, purchases, consumer.seen, cycles)
        say.summary(outcome, seconds=time.monotonic() - began, interval=INTERVAL)
    return 0 if outcome.good else 1


def _load(database: str, seed: int) -> list[dataset.Purchase]:
    with psycopg.connect(database) as connection:
        row = connection.execute(
            "SELECT count(*) FROM (SELECT FROM promotion.promotion_purchases LIMIT 1) AS one"
        ).fetchone()
    if row and row[0]:
        message = f"the database given by {stack.DATABASE} holds purchases: the demonstration needs an empty one"
        raise DevstackError(message)
    purchases = dataset.make(seed=seed, now=datetime.now(UTC))
    dataset.load(database, purchases)
    return purchases


def _programs(environ: dict[str, str]) -> Iterator[Program]:
    yield from (
        manage(f"worker {number}", "expire_promotions", "--loop", "--json", environ=environ)
        for number in range(1, WORKERS + 1)
    )
    yield manage("relay", "relay_outbox", "--loop", "--json", environ=environ)


def _watch(
    database: str,
    purchases: list[dataset.Purchase],
    consumer: BoostConsumer,
    programs: list[Program],
    say: report.Reporter,
) -> None:
    """Show the numbers until all that ends has ended and arrived. Raises DevstackError when it takes too long."""
    ids = [one.id for one in purchases]
    ending = [one for one in purchases if one.group in {"due", "ending"}]
    goal = len(ending) + sum(one.group == "expired" for one in purchases)
    deadline = time.monotonic() + PATIENCE
    with psycopg.connect(database, autocommit=True) as connection:
        while True:
            expired, due, waiting, published = connection.execute(_STATE, {"ids": ids}).fetchone() or (0, 0, 0, 0)
            state = report.State(expired, due, waiting, published, consumer.seen.messages)
            say.progress(state, goal=goal)
            if state.expired == goal and state.waiting == 0 and state.consumed >= len(ending):
                return
            for program in programs:
                program.check()
            if time.monotonic() > deadline:
                message = f"not done after {PATIENCE:g} s: {state}"
                raise DevstackError(message)
            time.sleep(0.5)
