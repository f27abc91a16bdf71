// Nothing typed is lost: what stands in a form is kept in the browser, per user and address, until it is saved or a week
// old. Signing out clears it.
import { me } from "./schema.js";

const WEEK = 7 * 24 * 3600 * 1000;
const DELAY = 300;
const PREFIX = "draft";

/** @param {string} name */
const keyOf = (name) => `${PREFIX} ${me.value.user.id ?? ""} ${name}`;

/** @type {Map<string, number>} */
const waiting = new Map();

/** Keeps a draft shortly after the last change.
 * @param {string} name @param {() => unknown} read */
export function keepDraft(name, read) {
  clearTimeout(waiting.get(name));
  waiting.set(name, setTimeout(() => {
    waiting.delete(name);
    write(keyOf(name), { at: Date.now(), value: read() });
  }, DELAY));
}

/** @param {string} name @returns {{ at: number, value: any } | null} */
export function readDraft(name) {
  try {
    const kept = JSON.parse(localStorage.getItem(keyOf(name)) ?? "null");
    return kept && Date.now() - kept.at < WEEK ? kept : null;
  } catch {
    return null;
  }
}

/** @param {string} name */
export function dropDraft(name) {
  clearTimeout(waiting.get(name));
  waiting.delete(name);
  write(keyOf(name), null);
}

export function dropAllDrafts() {
  for (const key of Object.keys(localStorage)) {
    if (key.startsWith(`${PREFIX} `)) localStorage.removeItem(key);
  }
}

/** What the user chose on this browser: columns, theme, density.
 * @param {string} name @param {any} fallback */
export function chosen(name, fallback) {
  try {
    return JSON.parse(localStorage.getItem(`chosen ${name}`) ?? "null") ?? fallback;
  } catch {
    return fallback;
  }
}

/** @param {string} name @param {unknown} value */
export const choose = (name, value) => write(`chosen ${name}`, value);

/** Storage may be full or switched off; the form then works without drafts.
 * @param {string} key @param {unknown} value */
function write(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {}
}
