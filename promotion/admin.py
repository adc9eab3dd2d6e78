"""The operators' pages of purchases, stuck ones and cycles."""

import uuid
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import Error
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from pinpromo import failures
from pinpromo.adminpages import ReadOnlyAdmin, age, badge
from promotion import admin_acts
from promotion.admin_filters import CompanyFilter, EndFilter, StatusFilter
from promotion.admin_history import events_of
from promotion.models import ExpirationFailure, ExpirationRun, PromotionPurchase, PromotionPurchaseTarget
from promotion.states import state

MOST_AT_ONCE = 50  # purchases that one action takes


class CancelForm(forms.Form):
    reason = forms.CharField(
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 60, "autofocus": True}),
        help_text="Stands in the audit log; the company's consumers do not see it.",
    )


class TargetInline(admin.TabularInline):  # type: ignore[type-arg]
    model = PromotionPurchaseTarget
    fields = ("kind", "target_id")
    readonly_fields = ("kind",)
    can_delete = False
    extra = 0

    @admin.display(description="type")
    def kind(self, target: PromotionPurchaseTarget) -> str:
        return target.target_type

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002
        return False


@admin.register(PromotionPurchase)
class PurchaseAdmin(ReadOnlyAdmin):
    exact_fields = ("pk", "tenant_id")
    search_help_text = "A whole purchase or company id"
    list_display = ("state", "purchase_and_company", "ends_at", "package_and_payment")
    list_display_links = None
    list_filter = (StatusFilter, EndFilter, CompanyFilter, "package_kind", "payment_status")
    list_select_related = ("expiration_failure",)
    sortable_by = ("ends_at",)
    inlines = (TargetInline,)
    actions = ("cancel_chosen", "retry_chosen")
    change_form_template = "promotion/purchase.html"

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """What ends next comes first; of what has ended, the latest."""
        if request.GET.get("status") in {"expired", "cancelled"}:
            return ("-ends_at", "-pk")
        return ("ends_at", "pk")

    def get_fieldsets(self, _request: HttpRequest, obj: Any = None) -> Any:
        stuck = [("Stuck", {"fields": ("stuck_reason", "stuck_since")})] if hasattr(obj, "expiration_failure") else []
        return [
            (None, {"fields": ("state", "id", "company", "package", "payment_status")}),
            *stuck,
            ("Time", {"fields": (("starts_at", "ends_at"), ("created_at", "updated_at"), "version")}),
            ("Events", {"fields": ("events",)}),
        ]

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("cancel/", self.admin_site.admin_view(self.cancel_view), name="promotion_cancel"),
            path("retry/", self.admin_site.admin_view(require_POST(self.retry_view)), name="promotion_retry"),
        ]
        return own + super().get_urls()

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("promotion.cancel_promotionpurchase")

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("promotion.retry_promotionpurchase")

    @admin.display(description="state")
    def state(self, purchase: PromotionPurchase) -> SafeString:
        return state(purchase, now=timezone.now())

    @admin.display(description="purchase, and its company")
    def purchase_and_company(self, purchase: PromotionPurchase) -> SafeString:
        url = reverse("admin:promotion_promotionpurchase_change", args=[purchase.pk])
        return format_html(
            '<a class="id" href="{}">{}</a><br><span class="of">{}</span>', url, purchase.pk, self.company(purchase)
        )

    @admin.display(description="package, payment")
    def package_and_payment(self, purchase: PromotionPurchase) -> SafeString:
        payment = purchase.get_payment_status_display()
        return format_html('{}<br><span class="of">{}</span>', purchase.package_kind, payment)

    @admin.display(description="package")
    def package(self, purchase: PromotionPurchase) -> str:
        return purchase.package_kind  # as it stands: an unknown kind is what makes poison

    @admin.display(description="company")
    def company(self, purchase: PromotionPurchase) -> SafeString:
        url = reverse("admin:promotion_promotionpurchase_changelist")
        return format_html('<a class="id" href="{}?tenant_id={}">{}</a>', url, purchase.tenant_id, purchase.tenant_id)

    @admin.display(description="why")
    def stuck_reason(self, purchase: PromotionPurchase) -> str:
        return purchase.expiration_failure.reason

    @admin.display(description="since")
    def stuck_since(self, purchase: PromotionPurchase) -> str:
        return describe_attempts(purchase.expiration_failure)

    @admin.display(description="recorded")
    def events(self, purchase: PromotionPurchase) -> SafeString:
        return events_of(purchase, now=timezone.now())

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may = {"may_cancel": self.has_cancel_permission(request), "may_retry": self.has_retry_permission(request)}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | may)

    @admin.action(description="Cancel …", permissions=["cancel"])
    def cancel_chosen(self, request: HttpRequest, queryset: QuerySet[PromotionPurchase]) -> HttpResponse | None:
        if (chosen := self._few(request, queryset)) is None:
            return None
        query = QueryDict(mutable=True)
        query.setlist("id", [str(purchase_id) for purchase_id in chosen])
        return HttpResponseRedirect(f"{reverse('admin:promotion_cancel')}?{query.urlencode()}")

    @admin.action(description="Retry now", permissions=["retry"])
    def retry_chosen(self, request: HttpRequest, queryset: QuerySet[PromotionPurchase]) -> None:
        if (chosen := self._few(request, queryset)) is not None:
            self._retry(request, chosen)

    def _few(self, request: HttpRequest, queryset: QuerySet[PromotionPurchase]) -> list[uuid.UUID] | None:
        chosen = list(queryset.values_list("pk", flat=True)[: MOST_AT_ONCE + 1])
        if len(chosen) <= MOST_AT_ONCE:
            return chosen
        messages.error(request, f"Choose {MOST_AT_ONCE} purchases at most; nothing was done.")
        return None

    def cancel_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for the reason, then cancel: GET with the ids, POST with the versions that were shown."""
        if not self.has_cancel_permission(request):
            raise PermissionDenied
        form = CancelForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            versions = dict(map(parse_version, request.POST.getlist("version")))
            outcome = admin_acts.cancel_all(versions, reason=form.cleaned_data["reason"], user=request.user)
            report(request, outcome, "cancelled")
            return back_to(list(versions))
        ids = [purchase_id for purchase_id, _ in map(parse_version, request.POST.getlist("version"))]
        ids += [parse_version(text)[0] for text in request.GET.getlist("id")]
        purchases = PromotionPurchase.objects.filter(pk__in=ids[:MOST_AT_ONCE]).select_related("expiration_failure")
        rows = [(purchase, self.state(purchase)) for purchase in purchases.order_by("ends_at", "pk")]
        context = {**self.admin_site.each_context(request), "title": "Cancel", "opts": self.opts} | {
            "form": form,
            "rows": [row for row in rows if row[0].status not in PromotionPurchase.TERMINAL],
            "ended": [row for row in rows if row[0].status in PromotionPurchase.TERMINAL],
        }
        return TemplateResponse(request, "promotion/cancel.html", context)

    def retry_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_retry_permission(request):
            raise PermissionDenied
        chosen = [parse_version(text)[0] for text in request.POST.getlist("id")[:MOST_AT_ONCE]]
        self._retry(request, chosen)
        return back_to(chosen)

    def _retry(self, request: HttpRequest, chosen: list[uuid.UUID]) -> None:
        try:
            report(request, admin_acts.retry_all(chosen, user=request.user), "expired")
        except Error as error:
            messages.error(request, f"Not retried: {failures.advise(error)}.")


def parse_version(text: str) -> tuple[uuid.UUID, int]:
    """Parse `<id>` or `<id>:<version>`. Raises PermissionDenied: no page of ours sends anything else."""
    purchase_id, _, version = text.partition(":")
    try:
        return uuid.UUID(purchase_id), int(version or 0)
    except ValueError as error:
        raise PermissionDenied from error


def report(request: HttpRequest, outcome: admin_acts.Outcome, done: str) -> None:
    """Tell the operator what became of the chosen purchases."""
    if outcome.done:
        what = f"Purchase {outcome.done[0]}" if len(outcome.done) == 1 else f"{len(outcome.done)} purchases"
        messages.success(request, f"{what} {done}.")
    for purchase_id, reason in outcome.refused.items():
        messages.error(request, f"Purchase {purchase_id} not {done}: {reason}.")


def back_to(chosen: list[uuid.UUID]) -> HttpResponse:
    """Return to the purchase, or to the list if there were several."""
    if len(chosen) == 1:
        return HttpResponseRedirect(reverse("admin:promotion_promotionpurchase_change", args=chosen))
    return HttpResponseRedirect(reverse("admin:promotion_promotionpurchase_changelist"))


def describe_attempts(failure: ExpirationFailure) -> str:
    now = timezone.now()
    first, last = age(now - failure.first_failed_at), age(now - failure.last_failed_at)
    return f"first failed {first} ago, last {last} ago, {failure.attempts:,} attempts"


@admin.register(ExpirationFailure)
class StuckAdmin(ReadOnlyAdmin):
    exact_fields = ("pk",)
    search_help_text = "A whole purchase id"
    list_display = ("purchase_link", "reason", "attempts", "first_failed_at", "last_failed_at")
    list_display_links = None
    ordering = ("first_failed_at", "pk")
    sortable_by = ()

    @admin.display(description="purchase")
    def purchase_link(self, failure: ExpirationFailure) -> SafeString:
        url = reverse("admin:promotion_promotionpurchase_change", args=[failure.pk])
        return format_html('<a class="id" href="{}">{}</a>', url, failure.pk)


@admin.register(ExpirationRun)
class RunAdmin(ReadOnlyAdmin):
    exact_fields = ("pk",)
    search_help_text = "A whole run id"
    list_display = (
        "finished_at", "instance", "expired", "failed_badge", "skipped_locked", "duration", "lateness", "run_id",
    )  # fmt: skip
    list_display_links = None
    ordering = ("-finished_at",)
    sortable_by = ()

    @admin.display(description="failed")
    def failed_badge(self, run: ExpirationRun) -> SafeString | int:
        return badge("bad", str(run.failed)) if run.failed else 0

    @admin.display(description="duration")
    def duration(self, run: ExpirationRun) -> str:
        return f"{run.duration_ms:,.0f} ms"

    @admin.display(description="late by")
    def lateness(self, run: ExpirationRun) -> str:
        return f"{run.lateness_seconds:,.0f} s" if run.expired else "-"
