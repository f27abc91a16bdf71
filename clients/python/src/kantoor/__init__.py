"""Client of the Kantoor API: generated functions and types, with retries, paging and webhook signatures."""

from .client import Kantoor, aitems, connect, items, ok
from .errors import (
    AuthenticationError,
    Conflict,
    ConnectionLost,
    FieldError,
    Forbidden,
    KantoorError,
    NotFound,
    PreconditionFailed,
    RateLimited,
    ServerError,
    Unavailable,
    ValidationFailed,
)
from .webhooks import InvalidSignature, verify_webhook

__version__ = "0.1.0"

__all__ = [
    "AuthenticationError",
    "Conflict",
    "ConnectionLost",
    "FieldError",
    "Forbidden",
    "InvalidSignature",
    "Kantoor",
    "KantoorError",
    "NotFound",
    "PreconditionFailed",
    "RateLimited",
    "ServerError",
    "Unavailable",
    "ValidationFailed",
    "aitems",
    "connect",
    "items",
    "ok",
    "verify_webhook",
]
