// Nothing typed is lost: what stands in a form is kept in the browser, per user and address, until it is saved, discarded or a
// week old. Signing out clears it. What is typed while something is being saved is kept here alone: in `saveTyped` for forms, in
// `useDraft` for a text.
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
 * @param {string} name @param {() => unknown} read Returns null if there is nothing to keep. */
export function keepDraft(name, read) {
  forget(name);
  const key = keyOf(name);
  const keep = () => {
    forget(name);
    const value = read();
    write(key, value === null ? null : { at: Date.now(), value });
  };
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

/** Saves a form, then what was typed in it meanwhile, until nothing is left; only then the draft is dropped. Whoever leaves finds
 * in the draft what was not saved.
 * @template Saved
 * @param {object} form
 * @param {string} form.draft
 * @param {() => unknown} form.typed What stands in the form; something else as soon as more is typed.
 * @param {() => Promise<Saved>} form.send
 * @param {((saved: Saved) => unknown)} [form.next] Lets the form continue from what was saved. Without it, what was typed
 * meanwhile waits in the form.
 * @param {() => boolean} [form.left] Whether the page of the form was left.
 * @returns {Promise<Saved>} */
export async function saveTyped({ draft, typed, send, next, left }) {
  for (;;) {
    const sent = typed();
    const saved = await send();
    const all = typed() === sent;
    if (all) dropDraft(draft);
    if (all || !next || left?.()) return saved;
    await next(saved);
  }
}

/** What was changed in a form, or null: a draft has no more than that, so that it takes back nothing that others changed.
 * @param {Record<string, any>} before @param {Record<string, any>} now */
export function changedSince(before, now) {
  const changed = Object.entries(now).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]));
  return changed.length > 0 ? Object.fromEntries(changed) : null;
}

/** What was typed after a text was sent.
 * @param {string} sent @param {string} now */
export const typedSince = (sent, now) => (now.startsWith(sent) ? now.slice(sent.length).trimStart() : now);

/** A text that is kept while it is typed.
 * @param {string} name @param {string} saved What the server has. */
export function useDraft(name, saved) {
  const [typed, setTyped] = useState(() => /** @type {string | null} */ (readDraft(name)?.value ?? null));
  const [restored, setRestored] = useState(typed !== null && typed !== saved);
  const latest = useRef(typed);
  latest.current = typed;
  /** @param {string | null} text */
  const take = (text) => { latest.current = text; setTyped(text); };
  const drop = () => { take(null); setRestored(false); dropDraft(name); };
  /** @param {string} text */
  const set = (text) => { take(text); keepDraft(name, () => text); };
  return {
    value: typed ?? saved, restored, set, drop,
    /** Forgets what was saved, but not what was typed since.
     * @param {string} text */
    saved: (text) => {
      setRestored(false);
      if ((latest.current ?? text) === text) drop();
    },
    /** Forgets what was sent; what was typed since is the beginning of the next text.
     * @param {string} text */
    sent: (text) => {
      const rest = typedSince(text, latest.current ?? "");
      drop();
      if (rest) set(rest);
    },
  };
}

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
