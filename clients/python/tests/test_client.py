"""Tests of the package without a server."""

import asyncio
import base64
import hashlib
import hmac
import time
import unittest

import httpx

from kantoor import (
    ConnectionLost,
    InvalidSignature,
    NotFound,
    RateLimited,
    ValidationFailed,
    connect,
    items,
    ok,
    verify_webhook,
)
from kantoor.generated.api.products import create_product, get_product, list_products
from kantoor.generated.models import CreateProductRequest
from kantoor.transport import RetryingTransport

PRODUCT = {
    "id": "p1", "name": "Hosting", "code": "", "price": 12.5, "vat_rate": "21", "unit": "month", "active": True,
    "meta": {"created_at": "2026-05-04T09:30:00.000Z", "updated_at": "2026-05-04T09:30:00.000Z", "version": 1},
}  # fmt: skip


def error(code: str, *details: dict) -> dict:
    return {"error": {"code": code, "message": "No.", "details": list(details)}, "data": {}, "meta": {}}


class Scripted:
    """Responds with each of these in turn, and remembers the requests and the pauses."""

    def __init__(self, *replies: httpx.Response | Exception) -> None:
        self.replies, self.requests, self.pauses = list(replies), [], []
        transport = httpx.MockTransport(self.reply)
        self.transport = RetryingTransport(3, transport, transport, self.pauses.append, self.pause)
        self.client = connect("kt_test", "http://test.invalid", transport=self.transport)

    def reply(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


def created() -> httpx.Response:
    return httpx.Response(201, json={"data": PRODUCT, "meta": {}})


class Retries(unittest.TestCase):
    body = CreateProductRequest(name="Hosting")

    def test_all_attempts_have_the_same_key(self) -> None:
        limited = httpx.Response(429, headers={"retry-after": "7"}, json=error("too_many_requests"))
        server = Scripted(limited, httpx.ReadError("reset"), httpx.Response(503), created())
        product = ok(create_product.sync(client=server.client, body=self.body)).data
        self.assertEqual((product.name, product.meta.created_at.year), ("Hosting", 2026))
        keys = {request.headers["idempotency-key"] for request in server.requests}
        self.assertEqual((len(server.requests), len(keys)), (4, 1))
        self.assertEqual(server.pauses[0], 7)
        self.assertEqual(server.requests[0].headers["prefer"], "handling=strict")
        self.assertEqual(server.requests[0].headers["authorization"], "Bearer kt_test")
        self.assertEqual({request.content for request in server.requests}, {b'{"name":"Hosting"}'})

    def test_the_key_of_the_caller_is_kept(self) -> None:
        server = Scripted(created())
        create_product.sync(client=server.client, body=self.body, idempotency_key="order-17")
        self.assertEqual(server.requests[0].headers["idempotency-key"], "order-17")

    def test_it_gives_up(self) -> None:
        server = Scripted(*[httpx.Response(429, json=error("too_many_requests")) for _ in range(4)])
        with self.assertRaises(RateLimited):
            create_product.sync(client=server.client, body=self.body)
        server = Scripted(*[httpx.ConnectError("refused") for _ in range(4)])
        with self.assertRaises(ConnectionLost):
            create_product.sync(client=server.client, body=self.body)

    def test_asynchronous_requests_are_retried_too(self) -> None:
        server = Scripted(httpx.Response(503), created())
        product = ok(asyncio.run(create_product.asyncio(client=server.client, body=self.body))).data
        self.assertEqual((product.id, len(server.pauses)), ("p1", 1))


class Errors(unittest.TestCase):
    def test_errors_name_code_field_and_request(self) -> None:
        wrong = {"field": "rows[2].quantity", "code": "wrong_type", "message": "must be a number"}
        reply = httpx.Response(422, headers={"x-request-id": "r-1"}, json=error("validation_failed", wrong))
        server = Scripted(reply)
        with self.assertRaises(ValidationFailed) as raised:
            create_product.sync(client=server.client, body=Retries.body)
        found = raised.exception
        self.assertEqual((found.status, found.code, found.field), (422, "validation_failed", "rows[2].quantity"))
        self.assertEqual((found.request_id, found.details[0].code), ("r-1", "wrong_type"))

    def test_a_page_of_a_proxy_is_an_error_too(self) -> None:
        server = Scripted(httpx.Response(404, text="<html>"))
        with self.assertRaises(NotFound):
            get_product.sync("p1", client=server.client)


class Lists(unittest.TestCase):
    def page(self, page: int, rows: int, **meta: object) -> httpx.Response:
        shown = {"page": page, "per_page": 2, "total": 2, "pages": 1, **meta}
        return httpx.Response(200, json={"data": [PRODUCT] * rows, "meta": shown})

    def test_a_search_that_is_counted_up_to_a_limit_is_read_to_its_end(self) -> None:
        least = {"total_is_minimum": True}
        for end, found in [(self.page(3, 1, total=5, pages=3), 5), (self.page(3, 0, **least), 4)]:
            server = Scripted(self.page(1, 2, **least), self.page(2, 2, **least), end)
            rows = list(items(list_products.sync, client=server.client, search="x", per_page=2))
            self.assertEqual((len(rows), len(server.requests)), (found, 3))


class Webhooks(unittest.TestCase):
    secret = "whsec_" + base64.b64encode(b"0123456789abcdef").decode()

    def headers(self, body: bytes, at: float) -> dict[str, str]:
        signed = f"msg_1.{int(at)}.".encode() + body
        digest = hmac.new(b"0123456789abcdef", signed, hashlib.sha256).digest()
        signature = f"v1,b2xk v1,{base64.b64encode(digest).decode()}"
        return {"Webhook-Id": "msg_1", "webhook-timestamp": str(int(at)), "webhook-signature": signature}

    def test_signatures(self) -> None:
        body = b'{"type":"invoice.paid","seq":7}'
        good = self.headers(body, time.time())
        self.assertEqual(verify_webhook(body, good, self.secret)["seq"], 7)
        self.assertEqual(verify_webhook(body.decode(), good, self.secret)["type"], "invoice.paid")
        for headers, sent in [
            (good, body + b" "),
            (self.headers(body, time.time() - 900), body),
            ({**good, "webhook-signature": "v1,bm8="}, body),
            ({**good, "webhook-timestamp": "soon"}, body),
            ({}, body),
        ]:
            with self.assertRaises(InvalidSignature):
                verify_webhook(sent, headers, self.secret)


if __name__ == "__main__":
    unittest.main()
