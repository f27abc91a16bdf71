import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import test from "node:test";

import { ConnectionLost, InvalidSignature, Kantoor, NotFound, RateLimited, ValidationFailed, verifyWebhook } from "../src/index.js";

/** Responds with each of these in turn, and remembers the requests and the pauses. */
function scripted(...replies: (Response | Error)[]) {
  const requests: Request[] = [];
  const pauses: number[] = [];
  const client = new Kantoor({
    key: "kt_test",
    baseUrl: "http://test.invalid/",
    retries: 3,
    fetch: async (input, init) => {
      requests.push(new Request(input, init));
      const reply = replies.shift();
      if (!reply || reply instanceof Error) throw reply ?? new Error("no more replies");
      return reply;
    },
    sleep: async (milliseconds) => void pauses.push(milliseconds),
  });
  return { client, requests, pauses };
}

const created = () => Response.json({ data: { id: "p1", name: "Hosting" }, meta: {} }, { status: 201 });
const failed = (status: number, headers = {}) =>
  Response.json({ error: { code: "too_many_requests", message: "No.", details: [] } }, { status, headers });

test("all attempts have the same key", async () => {
  const { client, requests, pauses } = scripted(failed(429, { "retry-after": "7" }), new TypeError("reset"), failed(503), created());
  const { data } = await client.post("/v1/products", { body: { name: "Hosting" } });
  assert.equal(data.name, "Hosting");
  assert.equal(requests.length, 4);
  assert.equal(new Set(requests.map((one) => one.headers.get("idempotency-key"))).size, 1);
  assert.equal(pauses[0], 7000);
  assert.equal(requests[0]?.headers.get("prefer"), "handling=strict");
  assert.equal(requests[0]?.headers.get("authorization"), "Bearer kt_test");
  assert.deepEqual(await requests[3]?.json(), { name: "Hosting" });
});

test("the key of the caller is kept", async () => {
  const { client, requests } = scripted(created());
  await client.post("/v1/products", { body: { name: "Hosting" }, idempotencyKey: "order-17" });
  assert.equal(requests[0]?.headers.get("idempotency-key"), "order-17");
});

test("it gives up", async () => {
  const limited = scripted(...Array.from({ length: 4 }, () => failed(429)));
  await assert.rejects(limited.client.get("/v1/products"), RateLimited);
  const down = scripted(...Array.from({ length: 4 }, () => new TypeError("refused")));
  await assert.rejects(down.client.get("/v1/products"), ConnectionLost);
});

test("errors name code, field and request", async () => {
  const details = [{ field: "rows[2].quantity", code: "wrong_type", message: "must be a number" }];
  const body = { error: { code: "validation_failed", message: "No.", details } };
  const { client } = scripted(Response.json(body, { status: 422, headers: { "x-request-id": "r-1" } }));
  await assert.rejects(client.post("/v1/products", { body: { name: "" } }), (error) => {
    assert.ok(error instanceof ValidationFailed);
    assert.deepEqual([error.code, error.field, error.requestId, error.name], ["validation_failed", "rows[2].quantity", "r-1", "ValidationFailed"]);
    return true;
  });
  const page = scripted(new Response("<html>", { status: 404 }));
  await assert.rejects(page.client.get("/v1/products/{id}", { path: { id: "p/1" } }), NotFound);
  assert.equal(page.requests[0]?.url, "http://test.invalid/v1/products/p%2F1");
});

test("types reject what the API would reject", () => {
  const { client } = scripted();
  const wrong = async () => {
    // @ts-expect-error: there is no such path.
    await client.get("/v1/prodcts");
    // @ts-expect-error: the id is required.
    await client.get("/v1/products/{id}");
    // @ts-expect-error: there is no such field.
    await client.post("/v1/products", { body: { nmae: "Hosting" } });
    // @ts-expect-error: there is no such parameter.
    await client.get("/v1/products", { query: { serach: "hosting" } });
    // @ts-expect-error: there is no such type of step.
    await client.post("/v1/automation/flows", { body: { name: "x", trigger_type: "custom", trigger_key: "x", steps: [{ type: "nothing" }] } });
  };
  assert.equal(typeof wrong, "function");
});

test("webhooks are verified", async () => {
  const key = Buffer.from("0123456789abcdef");
  const secret = `whsec_${key.toString("base64")}`;
  const body = '{"type":"invoice.paid","seq":7}';
  const headers = (at: number) => {
    const signature = createHmac("sha256", key).update(`msg_1.${at}.${body}`).digest("base64");
    return { "Webhook-Id": "msg_1", "webhook-timestamp": String(at), "webhook-signature": `v1,b2xk v1,${signature}` };
  };
  const now = Math.floor(Date.now() / 1000);
  assert.equal((await verifyWebhook(body, headers(now), secret)).seq, 7);
  assert.equal((await verifyWebhook(Buffer.from(body), new Headers(headers(now)), secret)).type, "invoice.paid");
  for (const [given, sent] of [
    [headers(now), `${body} `],
    [headers(now - 900), body],
    [{ ...headers(now), "webhook-signature": "v1,bm8=" }, body],
    [{ ...headers(now), "webhook-timestamp": "soon" }, body],
    [{}, body],
  ] as const) {
    await assert.rejects(verifyWebhook(sent, given, secret), InvalidSignature);
  }
});

test("a search that is counted up to a limit is read to its end", async () => {
  const page = (names: string[], meta: object) => Response.json({ data: names.map((name) => ({ name })), meta });
  const least = { per_page: 2, total: 2, pages: 1, total_is_minimum: true };
  const { client, requests } = scripted(
    page(["a", "b"], { page: 1, ...least }),
    page(["c", "d"], { page: 2, ...least }),
    page(["e"], { page: 3, per_page: 2, total: 5, pages: 3 }),
  );
  const names: string[] = [];
  for await (const one of client.list("/v1/products", { query: { search: "x", per_page: 2 } })) names.push(one.name);
  assert.deepEqual(names, ["a", "b", "c", "d", "e"]);
  assert.equal(requests.length, 3);
  const full = scripted(page(["a", "b"], { page: 1, ...least }), page([], { page: 2, ...least }));
  for await (const one of full.client.list("/v1/products", { query: { search: "x", per_page: 2 } })) names.push(one.name);
  assert.equal(names.length, 7);
});
