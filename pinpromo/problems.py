"""Errors of the HTTP interface as problem details (RFC 9457), without internals."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import JsonResponse


class Problem(Exception):  # noqa: N818
    """A request that is answered by an error: what the caller is told, and no more."""

    def __init__(
        self, status: HTTPStatus, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers
        self.members = members

    def response(self) -> JsonResponse:
        return JsonResponse(
            {
                "type": "about:blank",
                "title": self.status.phrase,
                "status": self.status,
                "detail": self.detail,
                **self.members,
            },
            status=self.status,
            content_type="application/problem+json",
            headers=self.headers,
        )
