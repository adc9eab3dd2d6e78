"""Bearer tokens: JSON Web Tokens, verified by PyJWT with what the environment says (`JWT_*`)."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import jwt
from django.conf import settings

LEEWAY = 5  # seconds that the issuer's clock may differ from ours
REQUIRED = ["exp", "sub"]
FETCH_SECONDS = 3.0  # how long the JWKS address may take


class InvalidToken(Exception):  # noqa: N818
    """Not a token that we accept; the cause says why, the caller is not told."""


class KeysUnavailable(Exception):  # noqa: N818
    """The issuer's keys cannot be fetched right now."""


def verify(token: str) -> Mapping[str, Any]:
    """Return the claims of a token that is signed by our issuer, for us, and valid now.

    Raises InvalidToken, also when no key is configured, or KeysUnavailable.
    """
    if not settings.JWT_ALGORITHMS:
        raise InvalidToken("no algorithm is configured")
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            _key(token),
            algorithms=settings.JWT_ALGORITHMS,  # pinned: the token's own header never chooses
            audience=settings.JWT_AUDIENCE or None,
            issuer=settings.JWT_ISSUER or None,
            leeway=LEEWAY,
            options={"require": REQUIRED, "verify_aud": bool(settings.JWT_AUDIENCE)},
        )
    except jwt.PyJWKClientConnectionError as error:
        raise KeysUnavailable from error
    except jwt.PyJWTError as error:
        raise InvalidToken from error
    return claims


def _key(token: str) -> Any:
    if settings.JWT_JWKS_URL:
        return _issuer_keys(settings.JWT_JWKS_URL).get_signing_key_from_jwt(token)
    return settings.JWT_KEY


@cache
def _issuer_keys(url: str) -> jwt.PyJWKClient:
    """One client for the process: it keeps the keys for five minutes and refetches for an unknown key id."""
    return jwt.PyJWKClient(url, timeout=FETCH_SECONDS)
