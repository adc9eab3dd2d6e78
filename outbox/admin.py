"""The operators' pages of the outbox."""

import json
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.db import Error, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from outbox import operations
from outbox.models import Outbox
from outbox.states import state
from pinpromo import failures
from pinpromo.adminpages import ChoiceFilter, ReadOnlyAdmin

MOST_AT_ONCE = 1_000  # messages that one action takes
ACTS = {"requeue": operations.requeue, "skip": operations.skip}
DONE = {"requeue": "requeued", "skip": "skipped"}


def _headers(message: Outbox) -> dict[str, Any]:
    """The headers, or none if they are not what they should be: plain SQL may write anything."""
    return message.headers if isinstance(message.headers, dict) else {}


class StateFilter(ChoiceFilter):
    title = "state"
    parameter_name = "state"
    choices_by_name = {
        "pending": ("Pending", lambda found: found.pending()),
        "parked": ("Parked", lambda found: found.parked()),
        "skipped": ("Skipped", lambda found: found.skipped()),
        "published": ("Published", lambda found: found.published()),
    }
    ORDERING = {
        "pending": ("id",),
        "parked": ("parked_at", "id"),
        "skipped": ("-parked_at", "-id"),
        "published": ("-published_at", "-id"),
    }


class TopicFilter(admin.SimpleListFilter):
    title = "topic"
    parameter_name = "topic"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [(topic, topic) for topic in settings.OUTBOX_TOPICS]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(topic=self.value()) if self.value() else queryset


@admin.register(Outbox)
class OutboxAdmin(ReadOnlyAdmin):
    exact_fields = ("event_id", "aggregate_id")
    search_help_text = "A whole event id, or the id of what it tells of"
    list_display = ("id", "state", "event", "attempts", "last_error")
    list_filter = (StateFilter, TopicFilter)
    sortable_by = ()
    actions = ("requeue", "skip")
    change_form_template = "outbox/message.html"
    fieldsets = (
        (None, {"fields": ("state", "event_type", "event_id", "subject", "trace")}),
        ("Delivery", {"fields": ("topic", "key", "position", "attempts", "next_attempt_at", "last_error")}),
        ("Times", {"fields": ("created_at", "published_at", "parked_at", "skipped_at", "requeued_at")}),
        ("Message", {"fields": ("value", "exact_value", "header_table")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Outbox]:
        return super().get_queryset(request).defer("payload", "headers")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """The oldest of what waits comes first, the newest of all else; each order has its index."""
        return StateFilter.ORDERING.get(request.GET.get("state", ""), ("-id",))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.act_view))
        return [path("<int:message_id>/act/<str:act>/", view, name="outbox_act"), *super().get_urls()]

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("outbox.requeue_outbox")

    def has_skip_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("outbox.skip_outbox")

    @admin.display(description="state")
    def state(self, message: Outbox) -> SafeString:
        return state(message, now=timezone.now())

    @admin.display(description="event, and what it tells of")
    def event(self, message: Outbox) -> SafeString:
        return format_html('{}<br><span class="of">{}</span>', message.event_type, self.subject(message))

    @admin.display(description="tells of")
    def subject(self, message: Outbox) -> SafeString:
        if page := settings.OUTBOX_SUBJECT_PAGES.get(message.event_type):
            url = reverse(page, args=[message.aggregate_id])
            return format_html('<a class="id" href="{}">{}</a>', url, message.aggregate_id)
        return format_html('<span class="id">{}</span>', message.aggregate_id)

    @admin.display(description="trace")
    def trace(self, message: Outbox) -> SafeString | str:
        trace_id = ([*str(_headers(message).get("traceparent", "")).split("-"), ""])[1:2][0]
        if trace_id and settings.TRACE_URL:
            return format_html('<a href="{}">{}</a>', settings.TRACE_URL.replace("{trace_id}", trace_id), trace_id)
        return trace_id or "-"

    @admin.display(description="position")
    def position(self, message: Outbox) -> str:
        if message.published_partition is None:
            return "-"
        return f"partition {message.published_partition}, offset {message.published_offset}"

    @admin.display(description="value")
    def value(self, message: Outbox) -> SafeString:
        try:
            text = json.dumps(json.loads(message.payload), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            text = "This is not JSON; see the exact value."
        return format_html("<pre>{}</pre>", text)

    @admin.display(description="exact value")
    def exact_value(self, message: Outbox) -> SafeString:
        size = len(message.payload.encode())
        return format_html("<details><summary>{} bytes</summary><pre>{}</pre></details>", f"{size:,}", message.payload)

    @admin.display(description="headers")
    def header_table(self, message: Outbox) -> SafeString:
        rows = format_html_join("", "<tr><th>{}</th><td>{}</td></tr>", sorted(_headers(message).items()))
        return format_html('<table class="plain">{}</table>', rows)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may = {"may_requeue": self.has_requeue_permission(request), "may_skip": self.has_skip_permission(request)}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | may)

    @admin.action(description="Requeue", permissions=["requeue"])
    def requeue(self, request: HttpRequest, queryset: QuerySet[Outbox]) -> None:
        self._act(request, queryset, "requeue")

    @admin.action(description="Skip for good", permissions=["skip"])
    def skip(self, request: HttpRequest, queryset: QuerySet[Outbox]) -> None:
        self._act(request, queryset, "skip")

    def act_view(self, request: HttpRequest, message_id: int, act: str) -> HttpResponse:
        """Requeue or skip the one message."""
        if act not in ACTS or not request.user.has_perm(f"outbox.{act}_outbox"):
            raise PermissionDenied
        self._act(request, Outbox.objects.filter(pk=message_id), act)
        return HttpResponseRedirect(reverse("admin:outbox_outbox_change", args=[message_id]))

    def _act(self, request: HttpRequest, queryset: QuerySet[Outbox], act: str) -> None:
        chosen = list(queryset.order_by("id").values_list("pk", flat=True)[: MOST_AT_ONCE + 1])
        if len(chosen) > MOST_AT_ONCE:
            messages.error(request, f"Choose {MOST_AT_ONCE:,} messages at most; nothing was done.")
            return
        try:
            changed = self._act_audited(request, chosen, act)
        except Error as error:
            messages.error(request, f"Not {DONE[act]}: {failures.advise(error)}.")
            return
        if changed:
            messages.success(request, f"{len(changed):,} {DONE[act]}.")
        if left := len(chosen) - len(changed):
            messages.warning(request, f"{left:,} left alone: settled already, or in a relay's hands right now.")

    def _act_audited(self, request: HttpRequest, chosen: list[int], act: str) -> list[int]:
        with transaction.atomic():
            changed = ACTS[act](chosen, by=request.user.get_username())
            LogEntry.objects.log_actions(
                user_id=str(request.user.pk),
                queryset=Outbox.objects.defer("payload", "headers").filter(pk__in=changed),
                action_flag=CHANGE,
                change_message=DONE[act].capitalize(),
            )
        return changed
