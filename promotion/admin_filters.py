"""Filters of the purchases' list."""

import uuid
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from pinpromo.adminpages import ChoiceFilter
from promotion.models import ExpirationFailure, PromotionPurchase

Status = PromotionPurchase.Status
Purchases = QuerySet[PromotionPurchase]


class StatusFilter(ChoiceFilter):
    """Active unless another is chosen, or a single purchase or company is looked for."""

    title = "status"
    parameter_name = "status"
    choices_by_name = {
        "active": ("Active", lambda found: found.filter(status=Status.ACTIVE)),
        "pending": ("Pending", lambda found: found.filter(status=Status.PENDING)),
        "expired": ("Expired", lambda found: found.filter(status=Status.EXPIRED)),
        "cancelled": ("Cancelled", lambda found: found.filter(status=Status.CANCELLED)),
        "all": ("All", lambda found: found),
    }

    def __init__(self, request: HttpRequest, *arguments: Any) -> None:
        looked_for = request.GET.get("q") or request.GET.get(CompanyFilter.parameter_name)
        self.preset = "all" if looked_for else "active"
        super().__init__(request, *arguments)


class EndFilter(ChoiceFilter):
    title = "end"
    parameter_name = "end"
    choices_by_name = {
        "overdue": ("Overdue", lambda found: found.filter(status=Status.ACTIVE, ends_at__lte=timezone.now())),
        "stuck": ("Stuck", lambda found: found.filter(pk__in=ExpirationFailure.objects.values("purchase_id"))),
        "hour": ("In the next hour", lambda found: _between(found, timedelta(), timedelta(hours=1))),
        "day": ("In the next 24 hours", lambda found: _between(found, timedelta(), timedelta(days=1))),
        "week": ("In the next 7 days", lambda found: _between(found, timedelta(), timedelta(days=7))),
        "past-day": ("In the last 24 hours", lambda found: _between(found, timedelta(days=-1), timedelta())),
        "past-week": ("In the last 7 days", lambda found: _between(found, timedelta(days=-7), timedelta())),
    }


def _between(found: Purchases, start: timedelta, end: timedelta) -> Purchases:
    now = timezone.now()
    return found.filter(ends_at__gt=now + start, ends_at__lte=now + end)


class CompanyFilter(SimpleListFilter):
    """The company that a row's link or the address names: there are too many to list them."""

    title = "company"
    parameter_name = "tenant_id"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(self.value() or "", self.value() or "")]

    def has_output(self) -> bool:
        return self.value() is not None

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        if chosen is None:
            return queryset
        try:
            return queryset.filter(tenant_id=uuid.UUID(chosen))
        except ValueError:
            return queryset.none()
