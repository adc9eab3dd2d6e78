"""Purchases of promotions: their rules (pure, in memory) and the queries over them."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Self

from django.contrib.postgres.functions import RandomUUID
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now

# Instants that Python, RFC 3339 and every session time zone can express; "infinity" cannot be.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)


class InvalidTransition(ValueError):  # noqa: N818 - a refusal, in the words of the domain
    """The purchase's status forbids this change (INV-6)."""


class PurchaseQuerySet(models.QuerySet["PromotionPurchase"]):
    def due(self, at: datetime | Now) -> Self:
        """Active purchases that end at or before `at`."""
        return self.filter(status=PromotionPurchase.Status.ACTIVE, ends_at__lte=at)

    def not_stuck(self) -> Self:
        """Purchases whose expiry has not failed so far."""
        return self.exclude(pk__in=ExpirationFailure.objects.values("purchase_id"))

    def oldest_first(self) -> Self:
        """In the order in which they are expired."""
        return self.order_by("ends_at", "id")


class PromotionPurchase(models.Model):
    """A company's paid promotion of one or more targets, until `ends_at`."""

    class Status(models.TextChoices):
        PENDING = "Pending"
        ACTIVE = "Active"
        EXPIRED = "Expired"
        CANCELLED = "Cancelled"

    class PaymentStatus(models.TextChoices):
        NOT_REQUIRED = "NotRequired"
        PENDING = "Pending"
        PAID = "Paid"
        FAILED = "Failed"
        REFUNDED = "Refunded"

    class PackageKind(models.TextChoices):
        BOOST = "Boost"
        TOP = "Top"
        HIGHLIGHT = "Highlight"

    TERMINAL = frozenset({Status.EXPIRED, Status.CANCELLED})

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, db_default=RandomUUID(), editable=False)
    tenant_id = models.UUIDField()
    package_kind = models.TextField(choices=PackageKind)
    status = models.TextField(choices=Status, default=Status.PENDING, db_default=Status.PENDING)
    payment_status = models.TextField(
        choices=PaymentStatus, default=PaymentStatus.PENDING, db_default=PaymentStatus.PENDING
    )
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    version = models.IntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    objects = PurchaseQuerySet.as_manager()

    class Meta:
        db_table = '"promotion"."promotion_purchases"'
        verbose_name = "purchase"
        permissions = [
            ("cancel_promotionpurchase", "Can cancel purchase"),
            ("retry_promotionpurchase", "Can retry the expiry of a stuck purchase"),
        ]
        indexes = [
            models.Index(fields=["ends_at", "id"], name="purchases_due", condition=Q(status="Active")),
            # For the operators' search by company. It makes a cycle 2 % slower; one over all `ends_at`, 15 % more.
            models.Index(fields=["tenant_id", "ends_at"], name="purchases_company"),
        ]
        constraints = [
            models.CheckConstraint(
                name="purchases_status_known",
                condition=Q(status__in=["Pending", "Active", "Expired", "Cancelled"]),
            ),
            models.CheckConstraint(
                name="purchases_payment_status_known",
                condition=Q(payment_status__in=["NotRequired", "Pending", "Paid", "Failed", "Refunded"]),
            ),
            models.CheckConstraint(
                name="purchases_instants_finite",
                condition=Q(
                    starts_at__range=(EARLIEST, LATEST),
                    ends_at__range=(EARLIEST, LATEST),
                    created_at__range=(EARLIEST, LATEST),
                    updated_at__range=(EARLIEST, LATEST),
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.package_kind} {self.id}"

    def expire(self, *, at: datetime) -> None:
        """End the purchase because its time is over. Raises InvalidTransition unless it is active and due."""
        if self.status != self.Status.ACTIVE:
            raise InvalidTransition(f"only an Active purchase expires, this one is {self.status}")
        if self.ends_at > at:
            raise InvalidTransition("the purchase is not due yet")
        self._change(self.Status.EXPIRED, at=at)

    def cancel(self, *, at: datetime) -> None:
        """End the purchase because its company wants so. Raises InvalidTransition if it has ended."""
        if self.status in self.TERMINAL:
            raise InvalidTransition(f"the purchase is already {self.status}")
        self._change(self.Status.CANCELLED, at=at)

    def _change(self, status: Status, *, at: datetime) -> None:
        self.status = status
        self.updated_at = at
        self.version += 1


class PromotionPurchaseTarget(models.Model):
    """What a purchase promotes: a catalog card or a news post."""

    class TargetType(models.TextChoices):
        CATALOG_ITEM = "CatalogItem"
        NEWS_POST = "NewsPost"

    id = models.BigAutoField(primary_key=True)
    purchase = models.ForeignKey(PromotionPurchase, on_delete=models.CASCADE, related_name="targets")
    target_type = models.TextField(choices=TargetType)
    target_id = models.UUIDField()

    class Meta:
        db_table = '"promotion"."promotion_purchase_targets"'
        verbose_name = "target"

    def __str__(self) -> str:
        return f"{self.target_type} {self.target_id}"


class ExpirationFailureQuerySet(models.QuerySet["ExpirationFailure"]):
    def remember(self, reasons: Mapping[uuid.UUID, str], *, at: datetime) -> None:
        """Note one more failure, at `at`, of each purchase in `reasons`."""
        with transaction.atomic():
            known = self.order_by("pk").select_for_update().in_bulk(sorted(reasons))
            self.bulk_create(
                [
                    ExpirationFailure(
                        purchase_id=purchase_id,
                        first_failed_at=known[purchase_id].first_failed_at if purchase_id in known else at,
                        last_failed_at=at,
                        attempts=known[purchase_id].attempts + 1 if purchase_id in known else 1,
                        reason=reason,
                    )
                    for purchase_id, reason in sorted(reasons.items())
                ],
                update_conflicts=True,
                unique_fields=["purchase"],
                update_fields=["last_failed_at", "attempts", "reason"],
            )

    def forget_settled(self, purchase_ids: Collection[uuid.UUID]) -> None:
        """Drop the failures of purchases that are not due now: expired, cancelled, prolonged or gone."""
        due = PromotionPurchase.objects.due(Now()).filter(pk__in=purchase_ids).values("pk")
        self.filter(purchase_id__in=purchase_ids).exclude(purchase_id__in=due).delete()


class ExpirationFailure(models.Model):
    """A purchase that could not be expired (poison): the operators' list of what is stuck, and why."""

    # No database constraint: deleting a purchase by plain SQL must not fail because its expiry did.
    purchase = models.OneToOneField(
        PromotionPurchase,
        on_delete=models.CASCADE,
        primary_key=True,
        db_constraint=False,
        related_name="expiration_failure",
    )
    first_failed_at = models.DateTimeField()
    last_failed_at = models.DateTimeField()
    attempts = models.IntegerField()
    reason = models.TextField(help_text="What went wrong, without values of the row.")

    objects = ExpirationFailureQuerySet.as_manager()

    class Meta:
        db_table = '"promotion"."expiration_failures"'
        verbose_name = "stuck purchase"
        indexes = [models.Index(fields=["last_failed_at", "purchase"], name="failures_longest_ago")]

    def __str__(self) -> str:
        return f"{self.purchase_id}: {self.reason}"


class ExpirationRun(models.Model):
    """One completed cycle, kept for two days: the operators' view of what each instance did."""

    run_id = models.UUIDField(primary_key=True)
    instance = models.TextField(help_text="The worker's host and process id.")
    as_of = models.DateTimeField()
    finished_at = models.DateTimeField(db_default=Now())
    expired = models.IntegerField()
    failed = models.IntegerField()
    skipped_locked = models.IntegerField()
    duration_ms = models.FloatField()
    lateness_seconds = models.FloatField(help_text="How late the oldest of the expired was.")

    class Meta:
        db_table = '"promotion"."expiration_runs"'
        verbose_name = "cycle"
        indexes = [models.Index(fields=["finished_at"], name="runs_finished")]

    def __str__(self) -> str:
        return str(self.run_id)
