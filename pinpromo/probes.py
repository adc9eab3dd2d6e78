"""What machines ask of the web process: `/healthz` (it runs), `/readyz` (the database answers), `/metrics`."""

import secrets
from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from django.urls import resolve
from django.views.decorators.http import require_safe

from pinpromo import failures
from pinpromo.gauges import cut_off_after
from pinpromo.outages import OutageLog

PATHS = {"/healthz", "/readyz", "/metrics"}
READY_SECONDS = 3.0

_outage = OutageLog("readiness")

View = Callable[[HttpRequest], HttpResponse]


def middleware(get_response: View) -> View:
    """Answer probes before all else: they use plain HTTP, and names that are not in ALLOWED_HOSTS."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.path_info not in PATHS:
            return get_response(request)
        response: HttpResponse = resolve(request.path_info).func(request)
        return response

    return answer


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Say that the process runs."""
    return _plain(HTTPStatus.OK, "ok")


@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Say whether the database answers within READY_SECONDS."""
    try:
        with cut_off_after(READY_SECONDS), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as error:
        _outage.failed(failures.describe(error))
        connection.close()
        return _plain(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable")
    _outage.recovered()
    return _plain(HTTPStatus.OK, "ok")


def closed(view: View) -> View:
    """Show `view` only to who knows METRICS_TOKEN; to everybody while it is not set."""

    def show(request: HttpRequest) -> HttpResponse:
        wanted = f"Bearer {settings.METRICS_TOKEN}"
        given = request.headers.get("Authorization", "")
        if settings.METRICS_TOKEN and not secrets.compare_digest(given.encode(), wanted.encode()):
            response = _plain(HTTPStatus.UNAUTHORIZED, "a token is needed")
            response["WWW-Authenticate"] = "Bearer"
            return response
        return view(request)

    return show


def _plain(status: HTTPStatus, text: str) -> HttpResponse:
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
