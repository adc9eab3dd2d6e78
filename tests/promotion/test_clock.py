"""Other time zones, a change of daylight saving, and clocks that are ahead: nothing expires early (R-20)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from structlog.testing import capture_logs

from promotion.expiration import run_cycle
from tests.factories import PurchaseFactory
from tests.readings import events, statuses

pytestmark = pytest.mark.django_db
# Berlin puts its clocks back at 01:00 UTC: 02:30 local time comes twice.
BEFORE, AFTER = datetime(2025, 10, 26, 0, 30, tzinfo=UTC), datetime(2025, 10, 26, 1, 30, tzinfo=UTC)


def cycle(as_of):
    return run_cycle(as_of=as_of, batch_size=200, budget=30.0)


@pytest.fixture(params=["UTC", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Apia"])
def zone(request, settings):
    """TIME_ZONE of Django, and that of the database session."""
    settings.TIME_ZONE = request.param
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL TIME ZONE %s", [request.param])
    return ZoneInfo(request.param)


def test_the_hour_that_comes_twice_is_two_hours(zone):
    purchase = PurchaseFactory(ends_at=AFTER.astimezone(ZoneInfo("Europe/Berlin")))
    assert cycle(BEFORE.astimezone(zone)).selected == 0
    assert cycle((AFTER - timedelta(microseconds=1)).astimezone(zone)).selected == 0
    assert statuses([purchase]) == ["Active"]
    assert cycle(AFTER.astimezone(zone)).expired == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT updated_at = %s::text::timestamptz FROM promotion.promotion_purchases", [str(AFTER)])
        assert cursor.fetchone() == (True,)
    (event,) = events()
    assert (event["endsAt"], event["occurredAt"]) == ("2025-10-26T01:30:00.000000Z",) * 2


@pytest.mark.parametrize("hours", [1, 24 * 365])
def test_a_clock_ahead_of_the_database_says_so_and_expires_nothing_early(hours):
    ahead = datetime.now(UTC) + timedelta(hours=hours)
    purchase = PurchaseFactory(ends_at=ahead - timedelta(minutes=1))
    with capture_logs() as logs:
        assert cycle(ahead).selected == 0
    assert statuses([purchase]) == ["Active"]
    (warning,) = [line for line in logs if line["event"] == "clock_ahead"]
    assert warning["seconds"] == pytest.approx(hours * 3600, abs=60)


def test_a_clock_behind_expires_late_and_never_early():
    purchase = PurchaseFactory(ends_at=datetime.now(UTC) - timedelta(minutes=30))
    assert cycle(datetime.now(UTC) - timedelta(hours=1)).selected == 0
    assert cycle(datetime.now(UTC)).expired == 1
    assert statuses([purchase]) == ["Expired"]
