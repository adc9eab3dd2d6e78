"""The events of one purchase, as its page shows them."""

import json
from datetime import datetime

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from outbox.models import Outbox
from outbox.states import state
from promotion.models import PromotionPurchase

SHOWN = 10


def events_of(purchase: PromotionPurchase, *, now: datetime) -> SafeString:
    """Return the newest events as a table, each with a link to its message."""
    found = Outbox.objects.filter(aggregate_id=purchase.pk).order_by("-id")[: SHOWN + 1]
    rows = [_row(message, now) for message in list(found)[:SHOWN]]
    if not rows:
        return format_html("<p>{}</p>", "None.")
    more = reverse("admin:outbox_outbox_changelist") + f"?q={purchase.pk}"
    return format_html(
        '<table class="plain"><thead><tr><th>Status</th><th>Version</th><th>Recorded</th><th>Message</th>'
        "<th>Run</th></tr></thead><tbody>{}</tbody></table>{}",
        format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", rows),
        format_html('<p><a href="{}">All events</a></p>', more) if len(found) > SHOWN else "",
    )


def _row(message: Outbox, now: datetime) -> tuple[object, ...]:
    try:
        value = json.loads(message.payload)
    except ValueError:
        value = {}
    run = message.headers.get("ce_correlationid", "")
    return (
        value.get("status", "?"),
        value.get("version", "?"),
        f"{message.created_at:%Y-%m-%d %H:%M:%S}",
        format_html(
            '<a href="{}">{}</a> {}',
            reverse("admin:outbox_outbox_change", args=[message.pk]),
            message.pk,
            state(message, now=now),
        ),
        format_html(
            '<a class="id" href="{}?q={}">{}</a>', reverse("admin:promotion_expirationrun_changelist"), run, run
        )
        if run and value.get("status") == PromotionPurchase.Status.EXPIRED
        else run,
    )
