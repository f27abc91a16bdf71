"""The client that the generated functions take, and what makes their results easy to use."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import httpx

from .generated.client import AuthenticatedClient
from .generated.models import Error
from .transport import RetryingTransport

Kantoor = AuthenticatedClient
"""The client that `connect` returns."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def connect(
    key: str | None = None,
    base_url: str | None = None,
    *,
    timeout: float = 60.0,
    retries: int = 5,
    strict: bool = True,
    transport: RetryingTransport | None = None,
) -> Kantoor:
    """Returns a client for the generated functions. `key` and `base_url` default to ``KANTOOR_KEY`` and ``KANTOOR_URL``.

    Requests are repeated up to `retries` times after 429, 503 and a lost connection. Errors are raised as `KantoorError`.
    Unknown parameters are errors, unless `strict` is False.
    """
    key = key or os.environ.get("KANTOOR_KEY")
    if not key:
        raise ValueError("An API key is required: pass it, or set KANTOOR_KEY.")
    return Kantoor(
        base_url=base_url or os.environ.get("KANTOOR_URL") or "http://127.0.0.1:8080",
        token=key,
        headers={"Prefer": "handling=strict"} if strict else {},
        timeout=httpx.Timeout(timeout),
        httpx_args={"transport": transport or RetryingTransport(retries)},
    )


def ok(result: T | Error | None) -> T:
    """Returns the result of a generated function, for type checkers: errors have been raised before."""
    if result is None or isinstance(result, Error):
        raise TypeError(f"the response is not the documented one: {result!r}")
    return result


class _List(Protocol[T_co]):
    @property
    def data(self) -> Sequence[T_co]: ...

    @property
    def meta(self) -> Any: ...


def _goes_on(found: _List[Any], page: int) -> bool:
    """Tells whether there is another page. A search is counted up to a limit; beyond it, a full page has one after it."""
    if getattr(found.meta, "total_is_minimum", False):
        return len(found.data) == found.meta.per_page
    return page < getattr(found.meta, "pages", 1)


def items(operation: Callable[..., _List[T] | Error | None], *path: str, client: Kantoor, **query: Any) -> Iterator[T]:
    """Yields every item of a list, page by page: ``items(list_invoices.sync, client=kantoor, payment_status="open")``."""
    page = int(query.pop("page", 1))
    while True:
        found = ok(operation(*path, client=client, **query, **({} if page == 1 else {"page": page})))
        yield from found.data
        if not _goes_on(found, page):
            return
        page += 1


async def aitems(
    operation: Callable[..., Awaitable[_List[T] | Error | None]], *path: str, client: Kantoor, **query: Any
) -> AsyncIterator[T]:
    """Yields every item of a list like `items`, with the ``asyncio`` functions."""
    page = int(query.pop("page", 1))
    while True:
        found = ok(await operation(*path, client=client, **query, **({} if page == 1 else {"page": page})))
        for item in found.data:
            yield item
        if not _goes_on(found, page):
            return
        page += 1
