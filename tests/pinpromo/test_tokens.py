"""Tokens that must not be accepted, and the few that are."""

import base64
import hashlib
import hmac
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from pinpromo import tokens
from tests.tokens import KEY, PUBLIC_PEM, SETTINGS, claims, token

STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SECRET = "a shared secret of 32 bytes or more"


@pytest.fixture(autouse=True)
def _configured(settings):
    configure(settings)


def configure(settings, **changes):
    for name, value in (SETTINGS | changes).items():
        setattr(settings, name, value)


def forge(header, payload, signature=b""):
    """Write a token by hand, as no library would."""
    parts = [json.dumps(header).encode(), json.dumps(payload).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def hs_signed_by_the_public_key():
    head, payload, _ = forge({"alg": "HS256", "typ": "JWT"}, claims()).split(".")
    digest = hmac.new(PUBLIC_PEM.encode(), f"{head}.{payload}".encode(), hashlib.sha256).digest()
    return f"{head}.{payload}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


REFUSED = {
    "empty": lambda: "",
    "no token": lambda: "a.b.c",
    "alg none": lambda: forge({"alg": "none"}, claims()),
    "alg nOnE": lambda: forge({"alg": "nOnE"}, claims()),
    "signature cut off": lambda: token().rpartition(".")[0] + ".",
    "signed by a stranger": lambda: token(key=STRANGER),
    "HS256 with the public key": hs_signed_by_the_public_key,
    "another algorithm of the same key": lambda: token(algorithm="PS256"),
    "expired": lambda: token(exp=time.time() - 10),
    "never expires": lambda: token(exp=None),
    "not yet valid": lambda: token(nbf=time.time() + 60),
    "no subject": lambda: token(sub=None),
    "another audience": lambda: token(aud="invoices"),
    "no audience": lambda: token(aud=None),
    "another issuer": lambda: token(iss="https://evil.example.com/"),
    "no issuer": lambda: token(iss=None),
    "deep header": lambda: base64.urlsafe_b64encode(b"[" * 5_000).decode() + ".e30.AA",
    "unknown critical extension": lambda: token(headers={"crit": ["x"], "x": 1}),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_refused(make):
    with pytest.raises(tokens.InvalidToken):
        tokens.verify(make())


def test_accepted():
    assert tokens.verify(token(jti="42"))["jti"] == "42"


def test_the_issuers_clock_may_differ_a_little():
    tokens.verify(token(exp=time.time() - 2, nbf=time.time() + 2))


def test_nothing_is_accepted_without_configuration(settings):
    configure(settings, JWT_ALGORITHMS=[], JWT_KEY="")
    with pytest.raises(tokens.InvalidToken):
        tokens.verify(token())


def test_issuer_and_audience_count_only_when_configured(settings):
    configure(settings, JWT_ISSUER="", JWT_AUDIENCE="")
    tokens.verify(token(iss=None, aud=None))
    tokens.verify(token())


def test_a_shared_secret(settings):
    configure(settings, JWT_ALGORITHMS=["HS256"], JWT_KEY=SECRET)
    tokens.verify(token(key=SECRET, algorithm="HS256"))
    with pytest.raises(tokens.InvalidToken):
        tokens.verify(token(key=SECRET[::-1], algorithm="HS256"))


@pytest.fixture
def key_server():
    """Serves the issuer's public key under the id `first`."""
    jwk = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True) | {"kid": "first", "use": "sig"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.requests += 1
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"keys": [jwk]}).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.requests = 0
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_keys_from_the_issuers_address_are_fetched_once(settings, key_server):
    configure(settings, JWT_KEY="", JWT_JWKS_URL=f"http://127.0.0.1:{key_server.server_port}/keys")
    for _ in range(3):
        tokens.verify(token(headers={"kid": "first"}))
    for refused in [token(headers={"kid": "second"}), token(), token(key=STRANGER, headers={"kid": "first"})]:
        with pytest.raises(tokens.InvalidToken):
            tokens.verify(refused)
    assert key_server.requests == 1


def test_an_issuer_that_is_away_is_no_verdict_on_the_token(settings):
    configure(settings, JWT_KEY="", JWT_JWKS_URL="http://127.0.0.1:9/keys")
    with pytest.raises(tokens.KeysUnavailable):
        tokens.verify(token(headers={"kid": "first"}))
