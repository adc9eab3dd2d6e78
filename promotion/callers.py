"""Who calls the HTTP interface: a manager of one company, by a bearer token."""

import uuid
from dataclasses import dataclass
from http import HTTPStatus

import structlog
from django.http import HttpRequest

from pinpromo import tokens
from pinpromo.problems import Problem

log = structlog.get_logger("promotion.callers")

SCOPE = "promotions:cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The company that the caller speaks for, and the token's id, which says in the log who it was."""

    tenant_id: uuid.UUID
    token_id: str | None


def authorise(request: HttpRequest) -> Caller:
    """Return the request's caller. Raises Problem: 401 without a valid token, 403 without the right to cancel."""
    claims = _claims(request.headers.get("Authorization", ""))
    scope = claims.get("scope")
    if not isinstance(scope, str) or SCOPE not in scope.split(" "):
        raise _forbidden(f"the token's scope does not hold {SCOPE}", f', scope="{SCOPE}"')
    tenant_id = parse_id(claims.get("tenant_id"))
    if tenant_id is None:
        raise _forbidden("the token names no tenant_id")
    token_id = claims.get("jti")
    return Caller(tenant_id=tenant_id, token_id=token_id if isinstance(token_id, str) else None)


def parse_id(text: object) -> uuid.UUID | None:
    """Return the uuid written as 36 characters; None if it is anything else."""
    try:
        parsed = uuid.UUID(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return parsed if parsed and str(parsed) == str(text).lower() else None


def _claims(authorization: str) -> dict[str, object]:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise _unauthorized("a bearer token is needed", "Bearer")
    try:
        return dict(tokens.verify(token.strip()))
    except tokens.InvalidToken as error:
        log.info("token_refused", reason=type(error.__cause__ or error).__name__)
        raise _unauthorized("the bearer token is not valid", 'Bearer error="invalid_token"') from error
    except tokens.KeysUnavailable as error:
        log.warning("token_keys_unavailable")
        detail = "tokens cannot be verified right now"
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": "5"}) from error


def _unauthorized(detail: str, challenge: str) -> Problem:
    return Problem(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": challenge})


def _forbidden(detail: str, needed: str = "") -> Problem:
    challenge = f'Bearer error="insufficient_scope"{needed}'
    return Problem(HTTPStatus.FORBIDDEN, detail, headers={"WWW-Authenticate": challenge})
