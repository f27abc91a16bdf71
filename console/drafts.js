// Nothing typed is lost: what stands in a form is kept in the browser, per user and address, until it is saved or a week
// old. Signing out clears it.
import { useRef, useState } from "preact/hooks";
import { patch } from "./api.js";
import { me } from "./schema.js";

const WEEK = 7 * 24 * 3600 * 1000;
const DELAY = 300;
const PREFIX = "draft";

/** @param {string} name */
const keyOf = (name) => `${PREFIX} ${me.value.user.id ?? ""} ${name}`;

/** What is about to be kept. @type {Map<string, { timer: number, keep: () => void }>} */
const waiting = new Map();

/** Keeps a draft shortly after the last change.
 * @param {string} name @param {() => unknown} read */
export function keepDraft(name, read) {
  forget(name);
  const key = keyOf(name);
  const keep = () => { forget(name); write(key, { at: Date.now(), value: read() }); };
  waiting.set(name, { timer: setTimeout(keep, DELAY), keep });
}

/** @param {string} name */
function forget(name) {
  clearTimeout(waiting.get(name)?.timer);
  waiting.delete(name);
}

// A page that is left or out of sight may never come back.
const keepAll = () => { for (const { keep } of [...waiting.values()]) keep(); };
addEventListener("pagehide", keepAll);
document.addEventListener("visibilitychange", () => { if (document.hidden) keepAll(); });

/** @param {string} name @returns {{ at: number, value: any } | null} */
export function readDraft(name) {
  waiting.get(name)?.keep();
  try {
    const kept = JSON.parse(localStorage.getItem(keyOf(name)) ?? "null");
    return kept && Date.now() - kept.at < WEEK ? kept : null;
  } catch {
    return null;
  }
}

/** @param {string} name @param {unknown} value */
export const keepNow = (name, value) => write(keyOf(name), { at: Date.now(), value });

/** @param {string} name */
export function dropDraft(name) {
  forget(name);
  write(keyOf(name), null);
  write(keyOf(`sent ${name}`), null);
}

/** A text that is kept while it is typed.
 * @param {string} name @param {string} saved What the server has. */
export function useDraft(name, saved) {
  const [typed, setTyped] = useState(() => /** @type {string | null} */ (readDraft(name)?.value ?? null));
  const [restored, setRestored] = useState(typed !== null && typed !== saved);
  const latest = useRef(typed);
  latest.current = typed;
  return {
    value: typed ?? saved, restored,
    /** @param {string} text */
    set: (text) => { setTyped(text); keepDraft(name, () => text); },
    drop: () => { setTyped(null); setRestored(false); dropDraft(name); },
    /** Forgets what was saved, but not what was typed since.
     * @param {string} text */
    saved: (text) => {
      setRestored(false);
      setTyped((now) => (now === text ? null : now));
      if ((latest.current ?? text) === text) dropDraft(name);
    },
  };
}

/** What was typed after a text was sent.
 * @param {string} sent @param {string} now */
export const typedSince = (sent, now) => (now.startsWith(sent) ? now.slice(sent.length).trimStart() : now);

export function dropAllDrafts() {
  for (const name of [...waiting.keys()]) forget(name);
  for (const key of Object.keys(localStorage)) {
    if (key.startsWith(`${PREFIX} `)) localStorage.removeItem(key);
  }
}

/** What the user chose, by the path of its name: theme, columns.invoices. The server keeps it; the browser has a copy.
 * @param {string} name @param {any} fallback */
export function chosen(name, fallback) {
  const all = me.value.preferences ?? readChosen();
  return name.split(".").reduce((/** @type {any} */ part, key) => part?.[key], all) ?? fallback;
}

/** @param {string} name @param {unknown} value null takes it back. */
export function choose(name, value) {
  const [top = "", key] = name.split(".");
  const all = { ...(me.value.preferences ?? readChosen()) };
  all[top] = key ? { ...all[top], [key]: value } : value;
  me.value = { ...me.value, preferences: all };
  write(CHOSEN, all);
  patch("/v1/me", { preferences: { [top]: all[top] } }, { quiet: true, keep: true }).catch(() => {});
}

const CHOSEN = "chosen";

function readChosen() {
  try {
    return JSON.parse(localStorage.getItem(CHOSEN) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/** Storage may be full or switched off; the form then works without drafts.
 * @param {string} key @param {unknown} value */
function write(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {}
}
