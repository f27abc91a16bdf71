"""Retries, below the generated code: all of its functions use them, synchronous or not."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable

import httpx

from .errors import ConnectionLost, from_response

RETRIED = frozenset({429, 503})
LONGEST_WAIT = 60.0


class RetryingTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends a request until the server handles it, and raises its errors.

    A POST gets an ``Idempotency-Key``, which all attempts share: it takes effect once, even if the connection was lost after the
    server had handled it.
    """

    def __init__(
        self,
        retries: int,
        inner: httpx.BaseTransport | None = None,
        async_inner: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        async_sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._retries = retries
        self._inner = inner
        self._async_inner = async_inner
        self._sleep = sleep
        self._async_sleep = async_sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._inner is None:
            self._inner = httpx.HTTPTransport()
        _prepare(request)
        request.read()
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                response = self._inner.handle_request(request)
                # Here, so that a connection that is lost halfway through the response is repeated too.
                if not _is_stream(response):
                    response.read()
                if response.status_code < 400:
                    return response
            except httpx.TransportError as lost:
                if last or not _may_repeat(request, lost):
                    raise ConnectionLost(str(lost) or type(lost).__name__) from lost
                self._sleep(_pause(attempt, None))
                continue
            if last or response.status_code not in RETRIED:
                raise from_response(response)
            self._sleep(_pause(attempt, response))
        raise AssertionError("unreachable")

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._async_inner is None:
            self._async_inner = httpx.AsyncHTTPTransport()
        _prepare(request)
        await request.aread()
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                response = await self._async_inner.handle_async_request(request)
                if not _is_stream(response):
                    await response.aread()
                if response.status_code < 400:
                    return response
            except httpx.TransportError as lost:
                if last or not _may_repeat(request, lost):
                    raise ConnectionLost(str(lost) or type(lost).__name__) from lost
                await self._async_sleep(_pause(attempt, None))
                continue
            if last or response.status_code not in RETRIED:
                raise from_response(response)
            await self._async_sleep(_pause(attempt, response))
        raise AssertionError("unreachable")

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()

    async def aclose(self) -> None:
        if self._async_inner is not None:
            await self._async_inner.aclose()


def _prepare(request: httpx.Request) -> None:
    if request.method == "POST" and "idempotency-key" not in request.headers:
        request.headers["Idempotency-Key"] = str(uuid.uuid4())


def _is_stream(response: httpx.Response) -> bool:
    return str(response.headers.get("content-type", "")).startswith("text/event-stream")


def _may_repeat(request: httpx.Request, lost: httpx.TransportError) -> bool:
    """Whether it is safe to send it again when it is unknown what became of it."""
    if isinstance(lost, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
        return True
    # After a change that arrived, the record no longer has the version that If-Match names, and a deleted record is a 404.
    return request.method != "DELETE" and "if-match" not in request.headers


def _pause(attempt: int, response: httpx.Response | None) -> float:
    told = response.headers.get("retry-after", "") if response is not None else ""
    if told.isdigit():
        return min(float(told), LONGEST_WAIT)
    return min(0.25 * 2.0**attempt, 10.0) * random.uniform(0.75, 1.25)
