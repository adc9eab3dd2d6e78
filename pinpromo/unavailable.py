"""What people see on their pages while the database fails: a word on it, and one line in the log."""

from collections.abc import Callable

import structlog
from django.db import Error
from django.http import HttpRequest, HttpResponse

from pinpromo import failures
from pinpromo.deadline import deadline

log = structlog.get_logger("pinpromo.unavailable")

PAGE_SECONDS = 20.0  # for a request in all; a connection that has gone silent would hold its thread for ever
RETRY_AFTER = "5"  # seconds
TEXT = (
    "The database cannot be reached or is too busy.\n"
    "Go back in a few seconds, and look how things stand before you do anything again.\n"
)


class Unavailable:
    """A middleware: a view's database error of the infrastructure is answered by 503; all others are bugs.

    After PAGE_SECONDS the database calls of a request are interrupted, which is such an error.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with deadline(PAGE_SECONDS):
            return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not (isinstance(error, Error) and failures.is_infrastructure(error)):
            return None
        log.error("page_failed", path=request.path, reason=failures.describe(error))
        headers = {"Retry-After": RETRY_AFTER, "Cache-Control": "no-store"}
        return HttpResponse(TEXT, status=503, content_type="text/plain; charset=utf-8", headers=headers)
