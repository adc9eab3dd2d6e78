"""The HTTP interface: `POST /promotions/{id}/cancel`. Described by `docs/contract/openapi.yaml`."""

import uuid
from collections.abc import Collection
from http import HTTPStatus

import structlog
from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.http import parse_etags
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from outbox.recording import UnfitMessage
from pinpromo import failures
from pinpromo.isolation import Refused
from pinpromo.problems import Problem
from pinpromo.tracing import served
from promotion import events
from promotion.callers import Caller, authorise, parse_id
from promotion.cancellation import Cancellation, StaleVersion, cancel
from promotion.models import InvalidTransition, PromotionPurchase

log = structlog.get_logger("promotion.views")

RETRY_AFTER = "5"  # seconds


@csrf_exempt  # a bearer token is never sent by a browser on its own
@never_cache
@served("/promotions/{id}/cancel")
def cancel_purchase(request: HttpRequest, purchase_id: str) -> HttpResponse:
    """Cancel a purchase of the caller's company. The body is not looked at."""
    try:
        cancellation = _cancel_for(authorise(request), request, purchase_id)
    except Problem as problem:
        return problem.response()
    return JsonResponse(
        events.snapshot(cancellation.purchase, cancellation.targets),
        headers={"ETag": f'"{cancellation.purchase.version}"'},
    )


def _cancel_for(caller: Caller, request: HttpRequest, text: str) -> Cancellation:
    purchase_id = parse_id(text)
    if purchase_id is None:
        raise _not_found()
    if request.method != "POST":
        raise Problem(HTTPStatus.METHOD_NOT_ALLOWED, "only POST is allowed", headers={"Allow": "POST"})
    return _cancel(purchase_id, caller, _expected_versions(request))


def _cancel(purchase_id: uuid.UUID, caller: Caller, expected_versions: Collection[int] | None) -> Cancellation:
    """Cancel, or say as a Problem why not."""
    try:
        with structlog.contextvars.bound_contextvars(token_id=caller.token_id):
            return cancel(
                purchase_id,
                tenant_id=caller.tenant_id,
                at=timezone.now(),
                correlation_id=uuid.uuid4(),
                expected_versions=expected_versions,
            )
    except PromotionPurchase.DoesNotExist as error:
        raise _not_found() from error
    except InvalidTransition as error:
        raise Problem(HTTPStatus.CONFLICT, str(error)) from error
    except StaleVersion as error:
        raise Problem(HTTPStatus.PRECONDITION_FAILED, str(error)) from error
    except (Error, Refused, UnfitMessage) as error:
        raise _failed(purchase_id, error) from error


def _failed(purchase_id: uuid.UUID, error: Exception) -> Problem:
    reason = failures.describe(error)
    if failures.is_infrastructure(error):
        log.warning("cancellation_postponed", purchase_id=str(purchase_id), reason=reason)
        detail = "the purchase is being changed by somebody else, or the database is away; nothing was changed"
        return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": RETRY_AFTER})
    log.error("cancellation_failed", purchase_id=str(purchase_id), reason=reason)
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "the purchase could not be cancelled; nothing was changed")


def _not_found() -> Problem:
    """The same for an unknown purchase and another company's (R-42)."""
    return Problem(HTTPStatus.NOT_FOUND, "there is no such purchase")


def _expected_versions(request: HttpRequest) -> set[int] | None:
    """Return the versions that `If-Match` allows; None if any will do, none for what cannot be one of ours."""
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    texts = [etag.strip('"') for etag in parse_etags(header)]  # a weak one, W/"3", is no number and never matches
    return {int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 11}
