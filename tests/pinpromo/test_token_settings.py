"""Settings with which tokens could not be verified, or not safely, are refused at the start."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from pinpromo import token_settings
from tests.tokens import PUBLIC_PEM

SECRET = "s" * 32
DAMAGED_PEM = PUBLIC_PEM.replace("A", "B")
PRIVATE_PEM = "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("algorithms", "key", "jwks_url"),
    [
        ([], "", ""),
        (["RS256", "ES256"], PUBLIC_PEM, ""),
        (["HS256"], SECRET, ""),
        (["EdDSA"], "", "https://login.example.com/keys"),
    ],
)
def test_accepted(algorithms, key, jwks_url):
    token_settings.check(algorithms=algorithms, key=key, jwks_url=jwks_url)


@pytest.mark.parametrize(
    ("algorithms", "key", "jwks_url", "message"),
    [
        ([], SECRET, "", "JWT_ALGORITHMS is not set"),
        (["none"], SECRET, "", "JWT_ALGORITHMS holds none"),
        (["RS256"], "", "", "Set one of JWT_KEY and JWT_JWKS_URL"),
        (["RS256"], PUBLIC_PEM, "https://login.example.com/keys", "Set one of"),
        (["RS256", "HS256"], PUBLIC_PEM, "", "mixes"),
        (["HS256"], PUBLIC_PEM, "", "JWT_KEY is a PEM key"),
        (["HS256"], SECRET[1:], "", "32 bytes or more"),
        (["HS256", "HS512"], SECRET, "", "64 bytes or more"),
        (["HS256"], "", "https://login.example.com/keys", "serves public keys"),
        (["RS256"], "", "file:///etc/passwd", "no web address"),
        (["RS256"], SECRET, "", "no public key"),
        (["RS256"], PRIVATE_PEM, "", "no public key"),
        (["RS256", "ES256"], DAMAGED_PEM, "", "JWT_KEY is damaged, or no key for RS256, ES256"),
        (["RS256"], PUBLIC_PEM[:200], "", "JWT_KEY is damaged"),
        (["ES256"], PUBLIC_PEM, "", "no key for ES256"),
    ],
)
def test_refused(algorithms, key, jwks_url, message):
    with pytest.raises(ImproperlyConfigured, match=message):
        token_settings.check(algorithms=algorithms, key=key, jwks_url=jwks_url)
