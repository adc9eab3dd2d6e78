"""Refuses settings with which bearer tokens could not be verified, or not safely."""

import contextlib
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

# By the length in bytes of the secret that each asks for.
SYMMETRIC = {"HS256": 32, "HS384": 48, "HS512": 64}
ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


def check(*, algorithms: Sequence[str], key: str, jwks_url: str) -> None:
    """Raise ImproperlyConfigured, naming the variable, unless the three go together; all empty is fine."""
    if not (algorithms or key or jwks_url):
        return
    if not algorithms:
        raise ImproperlyConfigured("JWT_ALGORITHMS is not set. Set it to what the issuer signs with, such as RS256.")
    if unknown := set(algorithms) - {*SYMMETRIC, *ASYMMETRIC}:
        known = ", ".join([*SYMMETRIC, *ASYMMETRIC])
        raise ImproperlyConfigured(f"JWT_ALGORITHMS holds {', '.join(sorted(unknown))}: choose from {known}.")
    if bool(key) == bool(jwks_url):
        raise ImproperlyConfigured("Set one of JWT_KEY and JWT_JWKS_URL: it says whose tokens are accepted.")
    symmetric = set(algorithms) & set(SYMMETRIC)
    if symmetric and len(symmetric) < len(set(algorithms)):
        # A public key is no secret: who may choose HS256 as well signs with it.
        raise ImproperlyConfigured("JWT_ALGORITHMS mixes HS with other algorithms: choose one kind.")
    if jwks_url:
        _check_address(jwks_url, symmetric=bool(symmetric))
    elif symmetric:
        _check_secret(key, length=max(SYMMETRIC[name] for name in symmetric))
    elif "PUBLIC KEY-----" not in key:
        raise ImproperlyConfigured("JWT_KEY is no public key: set it to a PEM text (-----BEGIN PUBLIC KEY----- ...).")
    else:
        _check_public_key(key, algorithms)


def _check_public_key(key: str, algorithms: Sequence[str]) -> None:
    import jwt  # here, because it loads cryptography: only where there is a key

    for name in algorithms:
        with contextlib.suppress(ValueError, TypeError, jwt.PyJWTError):
            jwt.get_algorithm_by_name(name).prepare_key(key)
            return
    raise ImproperlyConfigured(
        f"JWT_KEY is damaged, or no key for {', '.join(algorithms)}: set it to the whole PEM text."
    )


def _check_address(jwks_url: str, *, symmetric: bool) -> None:
    if symmetric:
        raise ImproperlyConfigured("JWT_JWKS_URL serves public keys: JWT_ALGORITHMS cannot be HS256 and its kind.")
    if not jwks_url.startswith(("https://", "http://")):
        raise ImproperlyConfigured("JWT_JWKS_URL is no web address: set it to https://...")


def _check_secret(key: str, *, length: int) -> None:
    if "-----BEGIN" in key:
        raise ImproperlyConfigured("JWT_KEY is a PEM key: JWT_ALGORITHMS cannot be HS256 and its kind.")
    if len(key.encode()) < length:
        raise ImproperlyConfigured(f"JWT_KEY is too short for JWT_ALGORITHMS: set it to {length} bytes or more.")
