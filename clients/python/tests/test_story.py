"""A story with a real server, at KANTOOR_URL with the key KANTOOR_KEY."""

import asyncio
import contextlib
import http.server
import io
import os
import pathlib
import queue
import re
import threading
import unittest
import uuid

import httpx

from kantoor import Conflict, KantoorError, ValidationFailed, aitems, connect, items, ok, verify_webhook
from kantoor.generated.api.clients import create_client, get_client, update_client
from kantoor.generated.api.invoices import create_invoice, delete_invoice, download_invoice_pdf, finalize_invoice, list_invoices
from kantoor.generated.api.products import create_product, list_products
from kantoor.generated.api.webhook_endpoints import create_webhook_endpoint, delete_webhook_endpoint, test_webhook_endpoint
from kantoor.generated.models import (
    CreateClientRequest,
    CreateInvoiceRequest,
    CreateProductRequest,
    CreateWebhookEndpointRequest,
    InvoiceRowInput,
    UpdateClientRequest,
)
from kantoor.transport import RetryingTransport


class LosesTheFirstResponse(httpx.BaseTransport):
    """A connection that breaks after the server has handled the request."""

    def __init__(self) -> None:
        self.inner, self.sent = httpx.HTTPTransport(), 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        response = self.inner.handle_request(request)
        if self.sent == 1:
            response.read()
            raise httpx.ReadError("the connection was reset", request=request)
        return response

    def close(self) -> None:
        self.inner.close()


class Receiver(http.server.BaseHTTPRequestHandler):
    received: "queue.Queue[tuple[dict[str, str], bytes]]" = queue.Queue()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.put((dict(self.headers), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None: ...


@unittest.skipUnless(os.environ.get("KANTOOR_URL"), "KANTOOR_URL is not set")
class Story(unittest.TestCase):
    def test_an_invoice_is_made_and_finalized(self) -> None:
        with connect() as kantoor:
            client = ok(create_client.sync(client=kantoor, body=CreateClientRequest(company_name="Bakkerij De Ster"))).data
            row = InvoiceRowInput(name="Oven repair", quantity=2, unit_price="62.50", vat_rate="21")
            body = CreateInvoiceRequest(title="Oven", client_id=client.id, rows=[row])
            draft = ok(create_invoice.sync(client=kantoor, body=body)).data
            invoice = ok(finalize_invoice.sync(draft.id, client=kantoor)).data
            self.assertEqual((invoice.total_incl_vat, invoice.rows[0].unit_price), (151.25, 62.5))
            self.assertEqual(invoice.rows[0].vat_rate, "21")
            self.assertTrue(invoice.number)
            self.assertIn(invoice.id, [one.id for one in items(list_invoices.sync, client=kantoor, client_id=client.id)])
            pdf = ok(download_invoice_pdf.sync(invoice.id, client=kantoor))
            self.assertEqual(pdf.payload.read(5), b"%PDF-")
            with self.assertRaises(Conflict) as refused:
                delete_invoice.sync(invoice.id, client=kantoor)
            self.assertTrue(refused.exception.code and refused.exception.request_id)
            # A change sends only what was set.
            ok(update_client.sync(client.id, client=kantoor, body=UpdateClientRequest(city="Gouda")))
            changed = ok(get_client.sync(client.id, client=kantoor)).data
            self.assertEqual((changed.city, changed.company_name), ("Gouda", "Bakkerij De Ster"))

    def test_lists_are_read_page_by_page(self) -> None:
        unit = uuid.uuid4().hex
        with connect() as kantoor:
            for name in "abcde":
                ok(create_product.sync(client=kantoor, body=CreateProductRequest(name=f"{unit} {name}")))
            found = items(list_products.sync, client=kantoor, search=unit, per_page=2)
            self.assertEqual(sorted(product.name[-1] for product in found), list("abcde"))

        async def read() -> list[str]:
            async with connect() as kantoor:
                return [one.name async for one in aitems(list_products.asyncio, client=kantoor, search=unit, per_page=2)]

        self.assertEqual(len(asyncio.run(read())), 5)

    def test_a_retried_request_has_one_effect(self) -> None:
        broken = LosesTheFirstResponse()
        name = uuid.uuid4().hex
        with connect(transport=RetryingTransport(3, broken, sleep=lambda _: None)) as kantoor:
            ok(create_product.sync(client=kantoor, body=CreateProductRequest(name=name)))
        self.assertEqual(broken.sent, 2)
        with connect() as kantoor:
            self.assertEqual(len(list(items(list_products.sync, client=kantoor, search=name))), 1)

    def test_errors_name_every_invalid_field(self) -> None:
        row = InvoiceRowInput(name="x", quantity="many", unit_price="1.23456789")
        with connect() as kantoor, self.assertRaises(ValidationFailed) as raised:
            create_invoice.sync(client=kantoor, body=CreateInvoiceRequest(title="", rows=[row]))
        fields = {one.field for one in raised.exception.details}
        self.assertIn("rows[0].quantity", fields)
        self.assertGreater(len(fields), 1)
        with connect("kt_wrong") as kantoor, self.assertRaises(KantoorError) as raised:
            list_products.sync(client=kantoor)
        self.assertEqual((raised.exception.status, raised.exception.code), (401, "unauthorized"))

    def test_webhooks_are_verified(self) -> None:
        server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with connect() as kantoor:
            url = f"http://127.0.0.1:{server.server_port}/hooks"
            endpoint = ok(create_webhook_endpoint.sync(client=kantoor, body=CreateWebhookEndpointRequest(url=url))).data
            ok(test_webhook_endpoint.sync(endpoint.id, client=kantoor))
            headers, body = Receiver.received.get(timeout=20)
            self.assertEqual(verify_webhook(body, headers, endpoint.secret)["type"], "webhook.test")
            delete_webhook_endpoint.sync(endpoint.id, client=kantoor)
        server.shutdown()
        server.server_close()

    def test_the_example_of_the_readme_works(self) -> None:
        readme = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
        (example,) = re.findall(r"```python\n(.*?)```", readme, re.S)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(example, "README.md", "exec"), {})
        self.assertIn("151.25", said.getvalue())
        self.assertIn("title", said.getvalue())


if __name__ == "__main__":
    unittest.main()
