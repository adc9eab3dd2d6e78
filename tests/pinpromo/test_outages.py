"""The log of an outage, however long: when it begins, once a minute, when it is over."""

from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from pinpromo import outages


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(outages, "time", clock)
    return clock


def test_an_hour_of_failures_every_second_is_a_line_a_minute_and_one_at_the_end(clock):
    log = outages.OutageLog("database")
    with capture_logs() as lines:
        log.recovered()  # nothing to recover from
        for _ in range(3_600):
            log.failed("gone")
            clock.now += 1
        log.recovered()
        log.recovered()
    assert [line["event"] for line in lines] == ["database_failed"] * 60 + ["database_recovered"]
    assert [line["outage_seconds"] for line in lines] == [60 * minute for minute in range(60)] + [3_600]


def test_the_next_outage_is_told_of_at_once(clock):
    log = outages.OutageLog("database")
    with capture_logs() as lines:
        for _ in range(2):
            log.failed("gone")
            clock.now += 1
            log.recovered()
    assert [line["event"] for line in lines] == ["database_failed", "database_recovered"] * 2
    assert {line.get("outage_seconds") for line in lines} == {0, 1}
