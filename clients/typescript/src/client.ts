import { ConnectionLost, fromResponse } from "./errors.js";
import type { paths } from "./generated.js";

/** How a client reaches Kantoor. */
export interface Options {
  /** An API key, such as `kt_…`. */
  key: string;
  /** The address of the server; `http://127.0.0.1:8080` by default. */
  baseUrl?: string;
  /** How often a request is repeated after 429, 503 and a lost connection: 5 times by default. */
  retries?: number;
  /** Milliseconds after which an attempt is given up: 60,000 by default. */
  timeout?: number;
  /** Whether unknown parameters are errors: yes by default. */
  strict?: boolean;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch;
  /** Replaces the pause between attempts. */
  sleep?: (milliseconds: number) => Promise<void>;
}

type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths that have a method. */
type Having<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];

type Operation<P extends keyof paths, M extends Method> = Extract<paths[P][M & keyof paths[P]], { responses: unknown }>;

type Parameters<O, Place extends string> = O extends { parameters: infer All }
  ? Place extends keyof All
    ? NonNullable<All[Place]>
    : never
  : never;

type JsonOf<C> = C extends { content: { "application/json": infer J } } ? J : never;
type BodyOf<O> = O extends { requestBody?: infer B } ? JsonOf<NonNullable<B>> : never;

/** The response of an operation: 200, 201, or nothing. */
type Result<O> = O extends { responses: infer R }
  ? R extends { 200: infer Ok }
    ? JsonOf<Ok>
    : R extends { 201: infer Created }
      ? JsonOf<Created>
      : undefined
  : never;

/** The item of a list. */
type ItemOf<R> = R extends { data: (infer I)[] } ? I : never;

/** A part of a request that is required if one of its members is. */
type Part<Name extends string, T> = [T] extends [never]
  ? { [K in Name]?: never }
  : {} extends T
    ? { [K in Name]?: T }
    : { [K in Name]: T };

/** What every request accepts. */
/** What the `meta` of a list says about its pages. */
interface Counted {
  pages?: number;
  per_page?: number;
  total_is_minimum?: boolean;
}

interface Common {
  signal?: AbortSignal;
  /** Further headers, such as `If-Match`. */
  headers?: Record<string, string>;
  /** The key under which a POST takes effect once; a random one by default. */
  idempotencyKey?: string;
}

/** What a request takes: ids of the path, parameters, the body. */
export type RequestOptions<O> = Common &
  Part<"path", Parameters<O, "path">> &
  Part<"query", Parameters<O, "query">> &
  (O extends { requestBody: unknown } ? { body: BodyOf<O> } : { body?: BodyOf<O> });

/** The options of a request, which may be omitted if none is required. */
type Given<O> = {} extends RequestOptions<O> ? [options?: RequestOptions<O>] : [options: RequestOptions<O>];

/** A request before its types are forgotten. */
interface Plain extends Common {
  path?: Record<string, string>;
  query?: Record<string, unknown>;
  body?: unknown;
}

const RETRIED = new Set([429, 503]);
const LONGEST_PAUSE = 60_000;

/** A connection to Kantoor. Its methods take the paths of the API reference, and return `{data, meta}`. */
export class Kantoor {
  readonly #options: Required<Options>;

  constructor(options: Options) {
    this.#options = {
      baseUrl: "http://127.0.0.1:8080",
      retries: 5,
      timeout: 60_000,
      strict: true,
      fetch: (input, init) => fetch(input, init),
      sleep: (milliseconds) => new Promise((done) => setTimeout(done, milliseconds)),
      ...options,
    };
  }

  async get<P extends Having<"get">>(path: P, ...[options]: Given<Operation<P, "get">>): Promise<Result<Operation<P, "get">>> {
    return this.#json("GET", path, options);
  }

  async post<P extends Having<"post">>(path: P, ...[options]: Given<Operation<P, "post">>): Promise<Result<Operation<P, "post">>> {
    return this.#json("POST", path, options);
  }

  async put<P extends Having<"put">>(path: P, ...[options]: Given<Operation<P, "put">>): Promise<Result<Operation<P, "put">>> {
    return this.#json("PUT", path, options);
  }

  async patch<P extends Having<"patch">>(path: P, ...[options]: Given<Operation<P, "patch">>): Promise<Result<Operation<P, "patch">>> {
    return this.#json("PATCH", path, options);
  }

  async delete<P extends Having<"delete">>(path: P, ...[options]: Given<Operation<P, "delete">>): Promise<Result<Operation<P, "delete">>> {
    return this.#json("DELETE", path, options);
  }

  /** Returns the content of a PDF or a file. */
  async download<P extends Having<"get">>(path: P, ...[options]: Given<Operation<P, "get">>): Promise<ArrayBuffer> {
    const response = await this.#send("GET", path, plain(options));
    return response.arrayBuffer();
  }

  /** Uploads a file. */
  async upload(file: Blob, name: string, options: Common = {}): Promise<Result<Operation<"/v1/files", "post">>> {
    const form = new FormData();
    form.append("file", file, name);
    return this.#json("POST", "/v1/files", { ...options, body: form });
  }

  /** Yields every item of a list, page by page. */
  async *list<P extends Having<"get">>(
    path: P,
    ...[options]: Given<Operation<P, "get">>
  ): AsyncGenerator<ItemOf<Result<Operation<P, "get">>>, void, undefined> {
    const first = plain(options);
    for (let page = Number(first.query?.["page"] ?? 1); ; page += 1) {
      const request = page === 1 ? first : { ...first, query: { ...first.query, page } };
      const found = await this.#json<{ data: never[]; meta: Counted }>("GET", path, request);
      yield* found.data;
      const { pages = 1, per_page, total_is_minimum } = found.meta;
      // A search is counted up to a limit; beyond it, a full page has another one after it.
      if (total_is_minimum ? found.data.length !== per_page : page >= pages) return;
    }
  }

  async #json<T>(method: string, path: string, options: unknown): Promise<T> {
    const response = await this.#send(method, path, plain(options));
    const text = await response.text();
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  /** Sends a request until the server handles it. All attempts share the key, so that a POST takes effect once. */
  async #send(method: string, path: string, options: Plain): Promise<Response> {
    const { retries, fetch, sleep } = this.#options;
    const url = this.#url(path, options);
    const init = this.#init(method, options);
    for (let attempt = 0; ; attempt += 1) {
      const last = attempt === retries;
      let response: Response;
      try {
        const signals = [AbortSignal.timeout(this.#options.timeout), ...(options.signal ? [options.signal] : [])];
        const reply = await fetch(url, { ...init, signal: AbortSignal.any(signals) });
        // Here, so that a connection that is lost halfway through the response is repeated too.
        response = new Response(reply.status === 204 || reply.status === 304 ? null : await reply.arrayBuffer(), reply);
      } catch (cause) {
        options.signal?.throwIfAborted();
        if (last || !mayRepeat(method, init.headers)) {
          throw new ConnectionLost(`The server could not be reached: ${cause}`, { cause });
        }
        await sleep(pause(attempt));
        continue;
      }
      if (response.ok || response.status === 304) return response;
      if (last || !RETRIED.has(response.status)) throw await fromResponse(response);
      await sleep(pause(attempt, response.headers.get("retry-after")));
    }
  }

  #url(path: string, { path: ids = {}, query = {} }: Plain): URL {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const id = ids[name];
      if (!id) throw new TypeError(`path.${name} is required`);
      return encodeURIComponent(id);
    });
    const url = new URL(this.#options.baseUrl.replace(/\/+$/, "") + filled);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) url.searchParams.set(name, Array.isArray(value) ? value.join(",") : String(value));
    }
    return url;
  }

  #init(method: string, options: Plain): { method: string; headers: Headers; body?: string | FormData } {
    const headers = new Headers(options.headers);
    headers.set("authorization", `Bearer ${this.#options.key}`);
    if (this.#options.strict && !headers.has("prefer")) headers.set("prefer", "handling=strict");
    if (method === "POST") headers.set("idempotency-key", options.idempotencyKey ?? crypto.randomUUID());
    if (options.body === undefined) return { method, headers };
    if (options.body instanceof FormData) return { method, headers, body: options.body };
    headers.set("content-type", "application/json");
    return { method, headers, body: JSON.stringify(options.body) };
  }
}

/** Forgets the types of a request, which the compiler has checked. */
function plain(options: unknown): Plain {
  return (options ?? {}) as Plain;
}

/** Whether it is safe to send a request again when it is unknown what became of it. */
function mayRepeat(method: string, headers: Headers): boolean {
  // After a change that arrived, the record no longer has the version that If-Match names, and a deleted record is a 404.
  return method !== "DELETE" && !headers.has("if-match");
}

function pause(attempt: number, told?: string | null): number {
  const seconds = Number(told);
  if (told && seconds >= 0) return Math.min(seconds * 1000, LONGEST_PAUSE);
  return Math.min(250 * 2 ** attempt, 10_000) * (0.75 + Math.random() / 2);
}
