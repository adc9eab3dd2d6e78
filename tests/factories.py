"""Purchases as other programs write them: Active, due, with one target, unless told otherwise."""

import uuid
from datetime import UTC, datetime, timedelta

import factory

from promotion.models import PromotionPurchase, PromotionPurchaseTarget

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)  # the instant at which tests happen: in the past of every clock


class TargetFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = PromotionPurchaseTarget

    target_type = "CatalogItem"
    target_id = factory.LazyFunction(uuid.uuid4)


class PurchaseFactory(factory.django.DjangoModelFactory):
    """`targets=0` makes the purchase poison; `tests.poison` has every other kind."""

    class Meta:
        model = PromotionPurchase
        skip_postgeneration_save = True

    class Params:
        not_due = factory.Trait(ends_at=NOW + timedelta(microseconds=1))
        pending = factory.Trait(status="Pending")
        expired = factory.Trait(status="Expired", version=2)
        cancelled = factory.Trait(status="Cancelled", version=2)

    tenant_id = factory.LazyFunction(uuid.uuid4)
    package_kind = "Boost"
    status = "Active"
    payment_status = "Paid"
    starts_at = NOW - timedelta(days=30)
    ends_at = NOW - timedelta(minutes=5)

    @factory.post_generation
    def targets(self, create, extracted, **kwargs):
        wanted = 1 if extracted is None else extracted
        for _ in range(wanted if create else 0):
            TargetFactory(purchase=self, **kwargs)
