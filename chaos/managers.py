"""Managers who cancel purchases over HTTP, some of them with stale versions, foreign purchases or no token."""

import json
import random
import time
import uuid
from http.client import HTTPConnection, HTTPException
from typing import Any

import jwt

from chaos.ledger import Answer, Ledger
from chaos.sales import COMPANIES, Sale
from chaos.writer import Writer
from devstack.ports import HOST

PATIENCE = 20.0  # seconds for an answer
# What is asked for, and how often.
WISHES = {"cancel": 6, "cancel-version": 2, "cancel-stale-version": 2, "other-company": 1, "no-token": 1}


class Managers:
    """Each act is one request; what became of it goes into the ledger."""

    def __init__(self, port: int, secret: str, writer: Writer, ledger: Ledger) -> None:
        self._port = port
        self._secret = secret
        self._writer = writer
        self._ledger = ledger

    def act(self, dice: random.Random) -> None:
        """Ask for one cancellation, by preference of a purchase that is about to end."""
        sales = list(self._writer.recent)[-200:]
        if not sales:
            return
        now = time.time()
        sale = min(dice.sample(sales, min(6, len(sales))), key=lambda one: abs(one.ends_at.timestamp() - now))
        asked = dice.choices(list(WISHES), list(WISHES.values()))[0]
        self._ask(sale, asked, dice)

    def _ask(self, sale: Sale, asked: str, dice: random.Random) -> None:
        version = self._expected_version(sale, asked)
        tenant = dice.choice(COMPANIES) if asked == "other-company" else sale.tenant_id
        if asked == "other-company" and tenant == sale.tenant_id:
            return
        headers = {} if asked == "no-token" else {"Authorization": f"Bearer {self._token(tenant)}"}
        if version is not None:
            headers["If-Match"] = f'"{version}"'
        status, answer = self._post(f"/promotions/{sale.id}/cancel", headers)
        self._ledger.answers.append(Answer(sale.id, asked, version, status, answer.get("version")))

    def _expected_version(self, sale: Sale, asked: str) -> int | None:
        known = 1 + self._ledger.changes[sale.id]
        return {"cancel-version": known, "cancel-stale-version": max(0, known - 1)}.get(asked)

    def _token(self, tenant: uuid.UUID) -> str:
        claims = {"sub": "manager", "exp": time.time() + 60, "tenant_id": str(tenant), "scope": "promotions:cancel"}
        return jwt.encode(claims, self._secret, "HS256")

    def _post(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        connection = HTTPConnection(HOST, self._port, timeout=PATIENCE)
        try:
            connection.request("POST", path, headers=headers)
            response = connection.getresponse()
            body = response.read()
            return response.status, json.loads(body) if body.startswith(b"{") else {}
        except (OSError, HTTPException, ValueError):
            return 0, {}
        finally:
            connection.close()
