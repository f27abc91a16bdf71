/** A story with a real server, at KANTOOR_URL with the key KANTOOR_KEY. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";

import { Conflict, Kantoor, type Options, type Schemas, ValidationFailed, verifyWebhook } from "../src/index.js";

const baseUrl = process.env["KANTOOR_URL"];
const skip = baseUrl === undefined && "KANTOOR_URL is not set";

function connect(options: Partial<Options> = {}): Kantoor {
  return new Kantoor({ key: process.env["KANTOOR_KEY"] ?? "", baseUrl: baseUrl ?? "", ...options });
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test("an invoice is made and finalized", { skip }, async () => {
  const kantoor = connect();
  const { data: client } = await kantoor.post("/v1/clients", { body: { company_name: "Bakkerij De Ster" } });
  const rows: Schemas["InvoiceRowInput"][] = [{ name: "Oven repair", quantity: 2, unit_price: "62.50", vat_rate: "21" }];
  const { data: draft } = await kantoor.post("/v1/invoices", { body: { title: "Oven", client_id: client.id, rows } });
  const { data: invoice } = await kantoor.post("/v1/invoices/{id}/finalize", { path: { id: draft.id } });
  assert.deepEqual([invoice.total_incl_vat, invoice.rows[0]?.unit_price], [151.25, 62.5]);
  assert.ok(invoice.number);
  const found = await all(kantoor.list("/v1/invoices", { query: { client_id: client.id } }));
  assert.deepEqual(found.map((one) => one.id), [invoice.id]);
  const pdf = await kantoor.download("/v1/invoices/{id}/pdf/content", { path: { id: invoice.id } });
  assert.equal(Buffer.from(pdf).subarray(0, 5).toString(), "%PDF-");
  await assert.rejects(kantoor.delete("/v1/invoices/{id}", { path: { id: invoice.id } }), (error) => {
    assert.ok(error instanceof Conflict && error.code && error.requestId);
    return true;
  });
});

test("lists are read page by page", { skip }, async () => {
  const kantoor = connect();
  const unit = randomUUID();
  for (const name of "abcde") await kantoor.post("/v1/products", { body: { name: `${unit} ${name}` } });
  const found = await all(kantoor.list("/v1/products", { query: { search: unit, per_page: 2 } }));
  assert.deepEqual(found.map((one) => one.name.at(-1)).sort(), [..."abcde"]);
});

test("a retried request has one effect", { skip }, async () => {
  let sent = 0;
  const kantoor = connect({
    // The connection breaks after the server has handled the request.
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      sent += 1;
      if (sent === 1) throw new TypeError("the connection was reset");
      return response;
    },
    sleep: async () => {},
  });
  const name = randomUUID();
  await kantoor.post("/v1/products", { body: { name } });
  assert.equal(sent, 2);
  assert.equal((await all(connect().list("/v1/products", { query: { search: name } }))).length, 1);
});

test("errors name every invalid field", { skip }, async () => {
  const rows = [{ name: "x", quantity: "many", unit_price: "1.23456789" }];
  await assert.rejects(connect().post("/v1/invoices", { body: { title: "", rows } }), (error) => {
    assert.ok(error instanceof ValidationFailed);
    assert.ok(error.details.some((one) => one.field === "rows[0].quantity") && error.details.length > 1);
    return true;
  });
  await assert.rejects(connect({ key: "kt_wrong" }).get("/v1/products"), { status: 401, code: "unauthorized" });
});

test("files are uploaded", { skip }, async () => {
  const { data: file } = await connect().upload(new Blob(["some words"], { type: "text/plain" }), "words.txt");
  const content = await connect().download("/v1/files/{id}/content", { path: { id: file.id } });
  assert.equal(Buffer.from(content).toString(), "some words");
});

test("webhooks are verified", { skip }, async () => {
  const kantoor = connect();
  const server = createServer().listen(0, "127.0.0.1");
  const arrived = new Promise<[string, IncomingHttpHeaders]>((done) => {
    server.on("request", async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      response.writeHead(204).end();
      done([Buffer.concat(chunks).toString(), request.headers]);
    });
  });
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
  const { data: endpoint } = await kantoor.post("/v1/webhook-endpoints", { body: { url } });
  await kantoor.post("/v1/webhook-endpoints/{id}/test", { path: { id: endpoint.id } });
  const [body, headers] = await arrived;
  assert.equal((await verifyWebhook(body, headers, endpoint.secret)).type, "webhook.test");
  await kantoor.delete("/v1/webhook-endpoints/{id}", { path: { id: endpoint.id } });
  server.close();
  server.closeAllConnections();
});

test("the example of the README works", { skip }, async () => {
  const said: unknown[][] = [];
  const log = console.log;
  console.log = (...words: unknown[]) => void said.push(words);
  try {
    // Written by clients/generate.
    await import("./readme.js");
  } finally {
    console.log = log;
  }
  assert.equal(said[0]?.[1], 151.25);
  assert.equal(said.at(-1)?.[0], "title");
});
