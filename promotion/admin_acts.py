"""What operators do with purchases, by the same use cases as everybody, each with an entry in the audit log."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import AnonymousUser, User
from django.db import Error
from django.utils import timezone

from outbox.recording import UnfitMessage
from pinpromo import failures
from pinpromo.isolation import Refused
from promotion.cancellation import Cancellation, StaleVersion, cancel
from promotion.expiration import retry_now
from promotion.models import ExpirationFailure, InvalidTransition, PromotionPurchase

RETRY_SECONDS = 10.0


@dataclass(slots=True)
class Outcome:
    """What became of the chosen purchases."""

    done: list[uuid.UUID] = field(default_factory=list)
    refused: dict[uuid.UUID, str] = field(default_factory=dict)


def cancel_all(versions: Mapping[uuid.UUID, int], *, reason: str, user: User | AnonymousUser) -> Outcome:
    """Cancel each purchase that still has the version the operator saw."""
    outcome = Outcome()
    for purchase_id, version in versions.items():
        try:
            cancel(
                purchase_id,
                tenant_id=None,
                at=timezone.now(),
                correlation_id=uuid.uuid4(),
                expected_versions=[version],
                audit=_auditor(user, f"Cancelled: {reason}"),
            )
        except (PromotionPurchase.DoesNotExist, InvalidTransition, StaleVersion) as error:
            outcome.refused[purchase_id] = str(error)
        except (Error, Refused) as error:
            outcome.refused[purchase_id] = failures.advise(error)
        except UnfitMessage as error:
            outcome.refused[purchase_id] = str(error)
        else:
            outcome.done.append(purchase_id)
    return outcome


def _auditor(user: User | AnonymousUser, message: str) -> Callable[[Cancellation], None]:
    def write(cancellation: Cancellation) -> None:
        _audit(user, [cancellation.purchase], message)

    return write


def retry_all(purchase_ids: Sequence[uuid.UUID], *, user: User | AnonymousUser) -> Outcome:
    """Try to expire the purchases at once. Raises Django's database errors when the infrastructure fails."""
    result = retry_now(purchase_ids, as_of=timezone.now(), budget=RETRY_SECONDS)
    purchases = PromotionPurchase.objects.in_bulk(purchase_ids)
    reasons = dict(ExpirationFailure.objects.filter(pk__in=purchase_ids).values_list("pk", "reason"))
    outcome = Outcome()
    for purchase_id, purchase in purchases.items():
        if purchase.status == PromotionPurchase.Status.EXPIRED:
            outcome.done.append(purchase_id)
        else:
            outcome.refused[purchase_id] = reasons.get(purchase_id, "not due, or locked by somebody else")
        what = outcome.refused.get(purchase_id, "expired")
        _audit(user, [purchase], f"Retried (run {result.run_id}): {what}")
    return outcome


def _audit(user: User | AnonymousUser, purchases: Sequence[PromotionPurchase], message: str) -> None:
    LogEntry.objects.log_actions(
        user_id=str(user.pk), queryset=purchases, action_flag=CHANGE, change_message=message, single_object=True
    )
