"""Bearer tokens as a company's identity provider issues them."""

import time
import uuid

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ISSUER, AUDIENCE = "https://login.example.com/", "promotions"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC_PEM = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
SETTINGS = {
    "JWT_ALGORITHMS": ["RS256"],
    "JWT_KEY": PUBLIC_PEM,
    "JWT_JWKS_URL": "",
    "JWT_ISSUER": ISSUER,
    "JWT_AUDIENCE": AUDIENCE,
}


def claims(tenant=None, /, **changes):
    """Claims that may cancel; None takes a claim away."""
    complete = {
        "sub": "manager-7",
        "exp": time.time() + 300,
        "iss": ISSUER,
        "aud": AUDIENCE,
        "scope": "profile promotions:cancel",
        "tenant_id": str(tenant or uuid.uuid4()),
    }
    return {name: value for name, value in (complete | changes).items() if value is not None}


def token(tenant=None, /, *, key=KEY, algorithm="RS256", headers=None, **changes):
    return jwt.encode(claims(tenant, **changes), key, algorithm, headers)
