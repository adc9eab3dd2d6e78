"""What stands in the database: read by tests to compare before and after."""

import json

from outbox.models import Outbox
from promotion.models import PromotionPurchase


def row(purchase):
    """Every column of the purchase."""
    return PromotionPurchase.objects.values().get(pk=purchase.pk)


def rows(*purchases):
    """Every column of the purchases, by id; of all purchases if none is named."""
    found = PromotionPurchase.objects.values()
    if purchases:
        found = found.filter(pk__in=[purchase.pk for purchase in purchases])
    return {values["id"]: values for values in found}


def statuses(purchases):
    """The statuses, in the order of `purchases`."""
    found = rows(*purchases)
    return [found[purchase.pk]["status"] for purchase in purchases]


def messages(purchase=None):
    """The outbox rows, of one purchase or all, oldest first."""
    found = Outbox.objects.order_by("id")
    return list(found if purchase is None else found.filter(aggregate_id=purchase.pk))


def events(purchase=None):
    """The recorded events' values, of one purchase or all, oldest first."""
    return [json.loads(message.payload) for message in messages(purchase)]
