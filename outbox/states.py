"""How a message stands, in the words and colours of the operators' pages."""

from datetime import datetime, timedelta

from django.utils.safestring import SafeString

from outbox.models import Outbox
from pinpromo.adminpages import age, badge

SLOW = timedelta(minutes=1)  # pending for longer than this is not normal


def state(message: Outbox, *, now: datetime) -> SafeString:
    """Return the message's badge: published, parked, skipped, or pending and since when."""
    if message.published_at:
        return badge("ok", f"Published {age(now - message.published_at)} ago")
    if message.skipped_at:
        return badge("idle", f"Skipped {age(now - message.skipped_at)} ago")
    if message.parked_at:
        return badge("bad", f"Parked {age(now - message.parked_at)} ago")
    pending = now - message.created_at
    return badge("warn" if pending > SLOW else "busy", f"Pending for {age(pending)}")
