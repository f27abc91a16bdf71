// The API of the server, with the session as the caller. Lost connections are retried: a POST has an idempotency key and
// a PATCH the version it changes, so a request takes effect once.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { answered, keyFor } from "./unanswered.js";

/** @typedef {Record<string, any>} Item A record as the API returns it. */
/** @typedef {{ data: any, meta: Record<string, any>, etag: string, status: number }} Answer */
/** @typedef {{ field: string, code: string, message: string, count?: number }} FieldError */
/** @typedef {{ body?: unknown, etag?: string, key?: string | ((body: unknown) => string), abort?: AbortSignal, quiet?: boolean, keep?: boolean, tries?: number, anybody?: boolean }} Options `keep`: what is on the screen needs no reload. `tries`: how often to
 * try without a connection. `anybody`: whoever is signed in now, even if this page is another user's. */

export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {FieldError[]} details @param {string} requestId */
  constructor(status, code, message, details = [], requestId = "") {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
    this.requestId = requestId;
  }
}

/** The number of requests that somebody waits for. */
export const busy = signal(0);
/** Whether the server answered last time. */
export const reached = signal(true);
/** Whether the server has another version than this page. */
export const outdated = signal(false);
/** The ids of what is deleted, or will be unless somebody undoes it. */
export const gone = signal(/** @type {ReadonlySet<string>} */ (new Set()));

/** @typedef {{ id: string, path: string, etag?: string }} Deletion */
const DELETING = "deleting";

/** What is to be deleted, kept for the page after a reload.
 * @returns {Deletion[]} */
export function deletions() {
  try { return JSON.parse(sessionStorage.getItem(DELETING) ?? "[]"); } catch { return []; }
}

/** @param {string} id @param {Deletion} [deletion] */
export function keepDeletion(id, deletion) {
  const rest = deletions().filter((one) => one.id !== id);
  try { sessionStorage.setItem(DELETING, JSON.stringify(deletion ? [...rest, deletion] : rest)); } catch {}
}

/** Finishes what the page before had begun to delete: its request may be lost, or later than those of this page.
 * @param {(error: unknown) => void} refused */
export function finishDeletions(refused) {
  const begun = deletions();
  gone.value = new Set(begun.map((one) => one.id));
  for (const { id, path, etag } of begun) {
    remove(path, { etag, quiet: true }).catch((error) => {
      if (error instanceof ApiError && error.status === 404) return;
      gone.value = new Set([...gone.value].filter((one) => one !== id));
      refused(error);
    }).finally(() => keepDeletion(id));
  }
}

const MAX_TRIES = 5;
let leaving = false;
const version = document.documentElement.dataset.version ?? "";
/** For whom this page was made. Another tab may switch accounts or sign in as somebody else; the server then refuses what this page sends. */
export const user = document.documentElement.dataset.user ?? "";
/** @type {Record<string, string>} */
const forUser = user ? { "X-Kantoor-User": user } : {};
/** @type {Record<string, { body: any, etag: string }>} */
const first = readFirst();

/** @param {string} path @param {Options} [options] */
export const get = (path, options) => request("GET", path, options);
/** @param {string} path @param {unknown} body @param {Options} [options] */
export const post = (path, body, options) => write("POST", path, { ...options, body, key: typeof options?.key === "function" ? options.key(body) : (options?.key ?? newKey()) });
/** @param {string} path @param {unknown} body @param {Options} [options] */
export const patch = (path, body, options) => write("PATCH", path, { ...options, body });
/** Replaces a record as a whole.
 * @param {string} path @param {unknown} body @param {Options} [options] */
export const put = (path, body, options) => write("PUT", path, { ...options, body });
/** @param {string} path @param {Options} [options] */
export const remove = (path, options) => write("DELETE", path, options);

/** What the server takes of a file. */
export const MAX_FILE = 25 * 1024 * 1024;

/** Uploads a file. It is not retried: a file has no idempotency key.
 * @param {File} file @returns {Promise<Answer>} */
export async function uploadFile(file) {
  // The server would break the connection off, which says nothing.
  if (file.size > MAX_FILE) throw new ApiError(413, "file_too_large", file.name, [{ field: "file", code: "file_too_large", message: "", count: file.size }]);
  const body = new FormData();
  body.set("file", file);
  busy.value++;
  const send = async () => readResponse(await fetch("/console/v1/files", { method: "POST", headers: forUser, body }).catch(lost));
  try {
    const answer = await send().catch(async (error) => { if (await mayRepeat(error, false)) return send(); throw error; });
    reloadAll();
    return answer;
  } finally {
    busy.value--;
  }
}

/** A key that makes a POST take effect once; works without a secure context too. */
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns the keys of a form: the same body has the same key, a corrected form another one. */
export function formKey() {
  let key = newKey();
  let sent = "";
  return (/** @type {unknown} */ body) => {
    const text = JSON.stringify(body) ?? "";
    if (sent && sent !== text) key = newKey();
    sent = text;
    return key;
  };
}

/** @type {Map<string, { etag: string, key: string }>} What the next attempt sends, by the record and the version that was refused. */
const newer = new Map();

/** @param {string} method @param {string} path @param {Options} [options] @returns {Promise<Answer>} */
async function write(method, path, options) {
  const record = path.replace(/(\/[0-9a-f-]{36}).*/, "$1");
  const version = `${record} ${options?.etag}`;
  try {
    const answer = await request(method, path, { ...options, ...newer.get(version) });
    // What came with the page may be older than this.
    for (const known of Object.keys(first)) delete first[known];
    if (!options?.keep) reloadAll();
    return answer;
  } catch (error) {
    // The page shows the new version, and the next attempt of an action is about that one. Forms let people choose field by field.
    if (options?.etag && error instanceof ApiError && error.status === 412) {
      if (method === "POST" || method === "DELETE") newer.set(version, { etag: (await get(record)).etag, key: newKey() });
      reloadAll();
    }
    throw error;
  }
}

/** What asks the person first continues after a yes: a dangerous action for the password, and a page whose user is not signed in
 * any more for the way back.
 * @param {unknown} error @param {boolean} quiet @returns {Promise<boolean>} */
async function mayRepeat(error, quiet) {
  const code = error instanceof ApiError ? error.code : "";
  if (code === "confirmation_required") return (await import("./password.js")).askPassword();
  if (code === "user_changed") return (await import("./switched.js")).askUser(quiet);
  return false;
}

/** @param {string} method @param {string} path @param {Options} [options] @returns {Promise<Answer>} */
async function request(method, path, options = {}) {
  const known = method === "GET" ? takeFirst(path) : null;
  if (known) return known;
  if (!options.quiet) busy.value++;
  try {
    return await tryOften(method, path, options);
  } catch (error) {
    if (!(await mayRepeat(error, options.quiet ?? false))) throw error;
    return await tryOften(method, path, { ...options, key: options.key ? newKey() : undefined });
  } finally {
    if (!options.quiet) busy.value--;
  }
}

/** @param {string} method @param {string} path @param {Options} options @returns {Promise<Answer>} */
async function tryOften(method, path, options) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await once(method, path, options);
    } catch (error) {
      if (options.abort?.aborted) throw error;
      const repeated = attempt > 1 && error instanceof ApiError && (error.status === 412 || (method === "DELETE" && error.status === 404));
      if (repeated && (await tookEffect(method, path, options))) return { data: {}, meta: {}, etag: "", status: 200 };
      const wait = pause(error, attempt);
      const safe = ["GET", "PATCH", "PUT", "DELETE"].includes(method) || options.key;
      if (!safe || wait === null || attempt >= (error instanceof ApiError && error.status === 0 && options.tries || MAX_TRIES)) throw error;
      await new Promise((resume) => setTimeout(resume, wait));
    }
  }
}

/** @param {string} method @param {string} path @param {Options} options @returns {Promise<Answer>} */
async function once(method, path, options) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json", ...(options.anybody ? {} : forUser) };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.etag) headers["If-Match"] = options.etag;
  const repeatable = options.key && method === "POST" ? `${path} ${JSON.stringify(options.body) ?? ""}` : "";
  if (repeatable) headers["Idempotency-Key"] = keyFor(repeatable, String(options.key));
  let response;
  try {
    response = await fetch(`/console${path}`, {
      method,
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.abort,
      credentials: "same-origin",
      // A delete is sent while the page is left.
      keepalive: method === "DELETE",
    });
  } catch (error) {
    if (options.abort?.aborted) throw error;
    return lost();
  }
  if (repeatable) answered(repeatable);
  return readResponse(response);
}

/** @returns {never} */
function lost() {
  if (reached.value) setTimeout(lookAgain, LOOK_AGAIN);
  reached.value = false;
  throw new ApiError(0, "connection_lost", "The server cannot be reached.");
}

const LOOK_AGAIN = 5000;
/** When the server is back, what is on the screen is loaded again. */
async function lookAgain() {
  if (!reached.value) await fetch("/console/v1/me").then((response) => { reached.value = response.status < 502; }, () => {});
  if (reached.value) reloadAll({ live: true });
  else setTimeout(lookAgain, LOOK_AGAIN);
}

/** @param {Response} response @returns {Promise<Answer>} */
async function readResponse(response) {
  reached.value = true;
  const served = response.headers.get("X-Kantoor-Version");
  if (served && version && served !== version) outdated.value = true;
  const text = await response.text();
  if (response.status === 401 && !leaving) {
    leaving = true;
    location.assign(`/sign-in?ended&to=${encodeURIComponent(location.pathname + location.search)}`);
  }
  let body;
  try {
    body = text ? readJson(text) : { data: {}, meta: {} };
  } catch {
    throw new ApiError(response.status || 502, "unavailable", "The server sent an unreadable response.");
  }
  if (!response.ok) {
    const error = body.error ?? {};
    throw new ApiError(response.status, error.code ?? "internal_error", error.message ?? response.statusText, error.details ?? [],
      body.meta?.request_id ?? response.headers.get("X-Request-Id") ?? "");
  }
  return { data: body.data, meta: body.meta ?? {}, etag: response.headers.get("ETag") ?? "", status: response.status };
}

/** Numbers that a double cannot hold stay texts.
 * @param {string} text */
function readJson(text) {
  if (!/\d[\d.]{15}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, /** @type {any} */ ((/** @type {string} */ _, /** @type {any} */ value, /** @type {any} */ context) =>
    typeof value === "number" && context?.source?.length > 15 ? context.source : value));
}

/** Returns how long to wait before another try, or null if another try is of no use.
 * @param {unknown} error @param {number} attempt */
function pause(error, attempt) {
  if (!(error instanceof ApiError)) return null;
  const passing = error.status === 0 || error.status === 429 || error.status === 502 || error.status === 503 || error.code === "idempotency_in_flight";
  return passing ? Math.min(4000, 250 * 2 ** attempt) : null;
}

/** Whether the first try of a repeated request was done after all: its response was lost.
 * @param {string} method @param {string} path @param {Options} options */
async function tookEffect(method, path, options) {
  if (method === "DELETE") return true;
  try {
    const { data } = await once("GET", path, {});
    const sent = Object.entries(/** @type {Item} */ (options.body ?? {}));
    return sent.every(([name, value]) => JSON.stringify(data[name] ?? data.meta?.[name] ?? "") === JSON.stringify(value ?? ""));
  } catch {
    return false;
  }
}

function readFirst() {
  const block = document.getElementById("first");
  return block ? JSON.parse(block.textContent || "{}") : {};
}

/** Takes an answer that came with the page, once.
 * @param {string} path @returns {Answer | null} */
function takeFirst(path) {
  const found = first[path];
  if (!found) return null;
  delete first[path];
  return { data: found.body.data, meta: found.body.meta ?? {}, etag: found.etag ?? "", status: 200 };
}

// What screens have loaded. Every write reloads what is on the screen; the rest is forgotten.

/** @typedef {{ answer: Answer | null, error: ApiError | null, loading: boolean, reload: () => void, waiting: Answer | null, take: () => void }} Loaded
 * `waiting` is a newer answer that the screen holds back until `take`. */
/** @typedef {{ typing?: boolean, hold?: (before: Answer, now: Answer) => boolean }} Following How a screen follows changes by others: `typing`
 * if it keeps what is being typed, so that it can be reloaded meanwhile; `hold` says whether a newer answer waits. */

/** @type {Map<string, Answer>} */
const remembered = new Map();
/** @type {Set<{ reload: (live: boolean) => void, typing: boolean }>} */
const mounted = new Set();
const MAX_REMEMBERED = 60;
const FIRST_TRIES = 3;

/** @param {{ live?: boolean, typing?: boolean }} [why] `live`: somebody else changed something. `typing`: reload only what keeps what is being typed. */
export function reloadAll({ live = false, typing = false } = {}) {
  if (live && !reached.value) return;
  remembered.clear();
  for (const one of [...mounted]) if (!typing || one.typing) one.reload(live);
}

/** Loads a path; null loads nothing. While another path loads, the answer to the previous one stays.
 * @param {string | null} path @param {Following} [following] @returns {Loaded} */
export function useLoad(path, following = {}) {
  const [state, setState] = useState(() => begin(path));
  const [round, setRound] = useState({ count: 0, live: false });
  useEffect(() => {
    if (!path) return;
    const abort = new AbortController();
    const cached = remembered.get(path);
    if (cached && state.path !== path) setState({ path, answer: cached, error: null, loading: true, waiting: null });
    // Without a connection, one request looks for all that is on the screen whether the server is back.
    get(path, { abort: abort.signal, quiet: round.count > 0, tries: round.count > 0 ? 1 : FIRST_TRIES })
      .then((answer) => {
        remember(path, answer);
        if (abort.signal.aborted) return;
        setState((before) => round.live && before.path === path && before.answer && following.hold?.(before.answer, answer)
          ? { ...before, error: null, loading: false, waiting: answer } : { path, answer, error: null, loading: false, waiting: null });
      })
      .catch((error) => {
        if (!abort.signal.aborted) setState((before) => ({ path, answer: before.path === path ? before.answer : null, error: before.path === path && before.answer && !error.status ? before.error : error, loading: false, waiting: null }));
      });
    return () => abort.abort();
  }, [path, round]);
  useEffect(() => {
    const own = { reload, typing: Boolean(following.typing) };
    mounted.add(own);
    return () => void mounted.delete(own);
  }, []);
  const fresh = state.path === path;
  const answer = useMemo(() => withoutGone(state.answer), [state.answer, gone.value]);
  return { answer, error: fresh ? state.error : null, loading: state.loading || !fresh, reload: () => reload(false),
    waiting: fresh ? state.waiting : null, take: () => setState((before) => ({ ...before, answer: before.waiting ?? before.answer, waiting: null })) };
  /** @param {boolean} live */
  function reload(live) { setRound((before) => ({ count: before.count + 1, live })); }
}

/** A list without what is deleted.
 * @param {Answer | null} answer @returns {Answer | null} */
function withoutGone(answer) {
  const all = Array.isArray(answer?.data) ? answer.data : [];
  const data = all.filter((/** @type {Item} */ row) => !gone.value.has(row?.id));
  if (!answer || data.length === all.length) return answer;
  const total = answer.meta.total;
  return { ...answer, data, meta: total === undefined ? answer.meta : { ...answer.meta, total: total - all.length + data.length } };
}

/** @param {string | null} path @returns {{ path: string | null, answer: Answer | null, error: ApiError | null, loading: boolean, waiting: Answer | null }} */
function begin(path) {
  const known = path ? (takeFirstQuietly(path) ?? remembered.get(path) ?? null) : null;
  return { path, answer: known, error: null, loading: Boolean(path) && !known, waiting: null };
}

/** An answer that came with the page is drawn at once, and taken from there when the screen asks for it.
 * @param {string} path @returns {Answer | null} */
function takeFirstQuietly(path) {
  const found = first[path];
  return found ? { data: found.body.data, meta: found.body.meta ?? {}, etag: found.etag ?? "", status: 200 } : null;
}

/** @param {string} path @param {Answer} answer */
function remember(path, answer) {
  remembered.delete(path);
  remembered.set(path, answer);
  const oldest = remembered.keys().next().value;
  if (remembered.size > MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
}
