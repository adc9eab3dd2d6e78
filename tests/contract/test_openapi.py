"""The OpenAPI document tells the truth: schemathesis sends what it describes, and what it does not."""

import uuid
from pathlib import Path

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis import openapi

from pinpromo.wsgi import application
from tests.factories import PurchaseFactory
from tests.tokens import SETTINGS, token

pytestmark = pytest.mark.django_db
SCHEMA = openapi.from_path(Path(__file__).parents[2] / "docs/contract/openapi.yaml")
SCHEMA.app = application
CANCEL = SCHEMA["/promotions/{id}/cancel"]["POST"]
TENANT = uuid.uuid4()


@pytest.fixture(autouse=True)
def _configured(settings):
    for name, value in SETTINGS.items():
        setattr(settings, name, value)
    settings.ALLOWED_HOSTS = ["localhost"]
    for signal in (request_started, request_finished):  # the test's transaction outlives a request
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def call(case, **headers):
    response = case.call(headers={"Authorization": f"Bearer {token(TENANT)}"} | headers, base_url="https://localhost")
    case.validate_response(response, headers={"Authorization": f"Bearer {token(TENANT)}"} | headers)
    return response


@SCHEMA.parametrize()
@settings(max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_whatever_is_sent_for_an_unknown_purchase(case):
    call(case)


@pytest.mark.parametrize(
    ("state", "headers", "status"),
    [
        ({}, {}, 200),
        ({"targets": 0, "package_kind": "Mystery", "pending": True}, {"If-Match": '"1"'}, 200),
        ({}, {"Authorization": "Bearer x"}, 401),
        ({}, {"Authorization": f"Bearer {token(scope='profile')}"}, 403),
        ({"tenant_id": uuid.uuid4()}, {}, 404),
        ({"expired": True}, {}, 409),
        ({}, {"If-Match": '"9"'}, 412),
    ],
)
def test_every_answer_is_as_described(state, headers, status):
    purchase = PurchaseFactory(**{"tenant_id": TENANT} | state)
    case = CANCEL.Case(path_parameters={"id": str(purchase.pk)})
    assert call(case, **headers).status_code == status
