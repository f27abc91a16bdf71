"""The errors of the API as exceptions."""

from __future__ import annotations

from dataclasses import dataclass

import httpx


@dataclass(frozen=True)
class FieldError:
    """An invalid field of a request."""

    field: str
    """The path of the field, such as ``rows[2].quantity``."""
    code: str
    message: str


class KantoorError(Exception):
    """A request that failed. `code` is for programs, `message` for people."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "",
        details: tuple[FieldError, ...] = (),
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.details = details
        self.request_id = request_id
        """The id under which the log of the server knows the request."""

    @property
    def field(self) -> str:
        """The first invalid field, or an empty string."""
        return self.details[0].field if self.details else ""

    def __str__(self) -> str:
        where = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.code or self.status or 'error'}: {self.message}{where}"


class AuthenticationError(KantoorError):
    """401: there is no valid key."""


class Forbidden(KantoorError):
    """403: the key lacks a scope, or a quota is used up."""


class NotFound(KantoorError):
    """404: there is no such record in this account."""


class Conflict(KantoorError):
    """409: the state of the record does not allow it."""


class PreconditionFailed(KantoorError):
    """412: somebody else has changed the record in the meantime."""


class ValidationFailed(KantoorError):
    """400 and 422: the request is invalid; `details` lists every invalid field."""


class RateLimited(KantoorError):
    """429, after all retries."""


class Unavailable(KantoorError):
    """503, after all retries."""


class ServerError(KantoorError):
    """Any other 5xx."""


class ConnectionLost(KantoorError):
    """The server could not be reached, after all retries. `__cause__` has the reason."""


_BY_STATUS: dict[int, type[KantoorError]] = {
    400: ValidationFailed,
    401: AuthenticationError,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    422: ValidationFailed,
    429: RateLimited,
    503: Unavailable,
}


def from_response(response: httpx.Response) -> KantoorError:
    """Returns the exception for an error response that has been read."""
    status = response.status_code
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else KantoorError)
    request_id = response.headers.get("x-request-id", "")
    try:
        body = response.json()["error"]
        details = tuple(FieldError(one["field"], one["code"], one["message"]) for one in body["details"])
        message, code = str(body["message"]), str(body["code"])
    except (ValueError, KeyError, TypeError):
        # A proxy answered, not Kantoor.
        message, code, details = response.reason_phrase or "error", "", ()
    return kind(message, status=status, code=code, details=details, request_id=request_id)
