"""The admin site, which begins with the operations page."""

from datetime import timedelta
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone

from pinpromo.adminpages import age
from promotion import charts, overview
from promotion.states import late_after, lateness_kind

REFRESH_SECONDS = 30
NEEDED = ("promotion.view_promotionpurchase", "outbox.view_outbox")


class OperatorsSite(AdminSite):
    site_header = site_title = "PinPromo"
    index_title = "Operations"
    index_template = "promotion/operations.html"
    site_url = None
    APPS = ("promotion", "outbox")  # come first

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        apps = super().get_app_list(request, app_label)
        return sorted(apps, key=lambda app: (app["app_label"] not in self.APPS, app["name"] != "Promotion"))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Show how expiry and outbox stand; only the apps to who may not see purchases and messages."""
        shown = request.user.has_perms(NEEDED)
        return super().index(request, (extra_context or {}) | (_operations() if shown else {}))


def _operations() -> dict[str, Any]:
    now = timezone.now()
    backlog = overview.due(now)
    stuck_count, stuck = overview.stuck(now)
    cycles, topics = overview.cycles(now), overview.topics()
    late = now - backlog.oldest if backlog.oldest else None
    last = now - cycles[0].finished_at if cycles else None
    waits = [row["oldest"] for row in topics if row["oldest"]]
    waiting = now - min(waits) if waits else None
    return {
        "now": now,
        "refresh": REFRESH_SECONDS,
        "backlog": backlog,
        "backlog_kind": lateness_kind(late),
        "backlog_age": age(late) if late else "",
        "stuck_count": stuck_count,
        "stuck": [(failure, age(now - failure.first_failed_at)) for failure in stuck],
        "last_kind": "ok" if last is not None and last <= late_after() else "bad",
        "last_age": age(last) if last is not None else "",
        "pending": sum(row["count"] for row in topics),
        "pending_kind": lateness_kind(waiting) if waiting and waiting > timedelta(seconds=10) else "ok",
        "pending_age": age(waiting) if waiting else "",
        "parked": sum(row["parked"] for row in topics),
        "topics": [row | {"age": age(now - row["oldest"]) if row["oldest"] else "-"} for row in topics],
        "cycles": [(run, age(now - run.finished_at)) for run in cycles],
        "instances": [row | {"age": age(now - row["last"])} for row in overview.instances(now)],
        "charts": _charts(now),
    }


def _charts(now: Any) -> list[charts.Chart]:
    hour = now.replace(minute=0, second=0, microsecond=0)
    ending, past = overview.ending(now), overview.expired(now)
    back = hour - timedelta(hours=overview.HOURS - 1)
    return [
        charts.hourly("Ending in the next 24 hours", ending, start=hour, text=_purchases, total=f"{sum(ending):,}"),
        charts.hourly(
            "Expired in the last 24 hours", past["count"], start=back, text=_purchases, total=f"{sum(past['count']):,}"
        ),
        charts.hourly(
            "Lateness, the worst of each hour",
            past["late"],
            start=back,
            text=_seconds,
            scale=charts.SPANS,
            limit=late_after().total_seconds(),
        ),
        charts.hourly("Failures, the worst cycle of each hour", past["worst"], start=back, text=_purchases, limit=0),
    ]


def _purchases(count: float) -> str:
    return f"{count:,.0f} purchase{'' if count == 1 else 's'}"


def _seconds(seconds: float) -> str:
    return age(timedelta(seconds=seconds))
