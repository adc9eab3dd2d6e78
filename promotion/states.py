"""How a purchase stands, in the words and colours of the operators' pages."""

from datetime import datetime, timedelta

from django.conf import settings
from django.utils.safestring import SafeString

from pinpromo.adminpages import age, badge
from promotion.models import PromotionPurchase

Status = PromotionPurchase.Status


def late_after() -> timedelta:
    """Return from when on a due purchase is late: the SLO's interval (R-26), and one more for the cycle."""
    return timedelta(seconds=2 * settings.EXPIRE_PROMOTIONS_INTERVAL)


def lateness_kind(late: timedelta | None) -> str:
    """Return the colour for what has been due for `late`; None if nothing is."""
    if late is None:
        return "ok"
    return "bad" if late > late_after() else "warn"


def state(purchase: PromotionPurchase, *, now: datetime) -> SafeString:
    """Return the purchase's badge: what is overdue, and for how long, is told from what goes well."""
    if purchase.status in PromotionPurchase.TERMINAL:
        return badge("idle", f"{purchase.status} {age(now - purchase.updated_at)} ago")
    if purchase.status == Status.PENDING:
        return badge("busy", "Pending")
    if hasattr(purchase, "expiration_failure"):
        return badge("bad", f"Stuck, overdue {age(now - purchase.ends_at)}")
    if purchase.ends_at <= now:
        return badge(lateness_kind(now - purchase.ends_at), f"Overdue {age(now - purchase.ends_at)}")
    return badge("ok", f"Active, ends in {age(purchase.ends_at - now)}")
