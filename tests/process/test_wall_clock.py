"""The wall clock of a real worker jumps by an hour, forth and back: `make test-system` (Debian: libfaketime)."""

import contextlib
import time
from pathlib import Path

import psycopg
import pytest

from tests.programs import Program, database_url, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.system]

HOUR = 3600
SELL = """
WITH purchase AS (
    INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
    SELECT gen_random_uuid(), 'Boost', 'Active', now() - interval '9 days', now() + number * interval '%s ms'
    FROM generate_series(1, 40) AS number RETURNING id
)
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, 'NewsPost', gen_random_uuid() FROM purchase
"""
# By the database's clock, which nobody has touched: `now()` of the transaction that told of it.
EARLY = """
SELECT count(*) FROM promotion.outbox o JOIN promotion.promotion_purchases p ON p.id = o.aggregate_id
WHERE least(o.created_at, p.updated_at) < p.ends_at
"""
EXPIRED = "SELECT count(*) FROM promotion.promotion_purchases WHERE status = 'Expired'"
LEFT = "SELECT count(*) FROM promotion.promotion_purchases WHERE status = 'Active' AND ends_at < now()"


class Clock:
    """The wall clock that a process sees; its monotonic clock is the machine's."""

    def __init__(self, folder):
        libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        assert libraries, "libfaketime is missing; install it (Debian: apt-get install libfaketime)"
        self._file = folder / "offset"
        self.set(0)
        self.environment = {
            "LD_PRELOAD": str(libraries[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, seconds):
        """Make the clock differ from the machine's, from now on; a reader never sees half of it."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}s\n")
        fresh.replace(self._file)


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path)


@pytest.fixture
def link():
    with contextlib.closing(psycopg.connect(database_url(), autocommit=True)) as link:
        yield link


def value(link, sql):
    return link.execute(sql).fetchone()[0]


def ticks_for(loop, seconds):
    """How many cycles begin in so many seconds of the machine's time."""
    before = loop.count('"cycle_started"')
    time.sleep(seconds)
    return loop.count('"cycle_started"') - before


def test_the_grid_holds_and_nothing_expires_early(clock, link):
    with Program("expire_promotions", "--loop", "--interval", "1", **clock.environment) as loop:
        loop.wait_for("cycle_completed")
        assert loop.count("clock_ahead") == 0

        clock.set(HOUR)
        assert '"seconds":3' in loop.wait_for("clock_ahead").replace(" ", "")
        link.execute(SELL % 100)  # one every 0.1 s, for four seconds
        assert 3 <= ticks_for(loop, 4.5) <= 6
        assert value(link, EARLY) == 0
        eventually(lambda: value(link, EXPIRED) == 40)  # as punctual as ever, by the database's clock
        assert value(link, EARLY) == 0

        clock.set(-HOUR)
        warned = loop.count("clock_ahead")
        link.execute(SELL % 1)
        assert 2 <= ticks_for(loop, 3.5) <= 5
        assert loop.count("clock_ahead") <= warned + 1
        assert value(link, EXPIRED) == 40  # late, as its clock is; never early

        clock.set(0)
        eventually(lambda: value(link, LEFT) == 0)
        assert value(link, EARLY) == 0
        assert loop.stop() == 0
        # Not Traceback: libfaketime refuses the watchdog's time.sleep(1), which no kernel does.
        assert loop.count("ticks_missed") == loop.count("crashed") == 0


def test_an_instance_that_starts_with_a_clock_ahead_expires_nothing_early(clock, link):
    clock.set(HOUR)
    link.execute(SELL % 60_000)
    with Program("expire_promotions", "--json", **clock.environment) as once:
        once.wait_for("clock_ahead")
        assert once.wait() == 0
    assert value(link, EXPIRED) == 0
