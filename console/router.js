// The address: what is shown, and how to get elsewhere. Filters replace the address; opening something adds to the history.
import { signal } from "@preact/signals";

/** @typedef {{ path: string, query: string, hash: string }} Place */

/** @returns {Place} */
const here = () => ({ path: location.pathname, query: location.search.slice(1), hash: location.hash.slice(1) });

export const place = signal(here());
/** Whether the current place was reached with the back or forward button. */
export const wentBack = { value: false };

/** Asks a screen with unsaved work whether it can be left; set by the screen. */
export const beforeLeaving = { ask: /** @type {null | (() => void)} */ (null) };

/** @param {string} address @param {{ replace?: boolean }} [options] */
export function go(address, options = {}) {
  beforeLeaving.ask?.();
  noteRecent();
  if (options.replace) {
    history.replaceState(history.state, "", address);
  } else {
    keepScroll();
    history.pushState({}, "", address);
    scrollTo(0, 0);
  }
  wentBack.value = false;
  place.value = here();
}

/** Changes parameters of the address; an empty value removes one.
 * @param {Record<string, string | undefined>} changes */
export function setQuery(changes) {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(place.value.path + (text ? `?${text}` : ""), { replace: true });
}

const RECENT = "recent";
const MAX_RECENT = 6;

/** The records that were opened last in this tab, newest first.
 * @returns {{ path: string, name: string }[]} */
export function recent() {
  try {
    return JSON.parse(sessionStorage.getItem(RECENT) ?? "[]");
  } catch {
    return [];
  }
}

/** Notes the record that is left. */
function noteRecent() {
  const path = location.pathname;
  const name = document.querySelector("main h1")?.textContent ?? "";
  if (!name || !/\/[0-9a-f-]{36}$/.test(path)) return;
  try {
    sessionStorage.setItem(RECENT, JSON.stringify([{ path, name }, ...recent().filter((one) => one.path !== path)].slice(0, MAX_RECENT)));
  } catch {}
}

export const forgetRecent = () => sessionStorage.removeItem(RECENT);

/** Restores the scroll position and the focus of a place that was returned to; screens call it when their rows are there. */
export function restoreScroll() {
  if (!wentBack.value) return;
  wentBack.value = false;
  requestAnimationFrame(() => {
    scrollTo(0, history.state?.scroll ?? 0);
    const row = document.getElementById(history.state?.row ?? "");
    // A card of the board has its focus on its link.
    (row?.matches("tr") ? row : row?.querySelector("a"))?.focus({ preventScroll: true });
  });
}

function keepScroll() {
  const row = document.activeElement?.closest("tr[id], .deal[id]")?.id ?? history.state?.row;
  history.replaceState({ ...history.state, scroll: scrollY, row }, "");
}

/** @param {() => void} run */
function whenIdle(run) {
  // Not every browser has it.
  if ("requestIdleCallback" in window) requestIdleCallback(run, { timeout: 500 });
  else setTimeout(run);
}

const OUTSIDE = /^\/(console|v1|d|docs|sign-in|sign-out|two-factor|assets)(\/|$)/;

export function startRouter() {
  history.scrollRestoration = "manual";
  addEventListener("popstate", () => {
    beforeLeaving.ask?.();
    wentBack.value = true;
    place.value = here();
  });
  let timer = 0;
  addEventListener("scroll", () => {
    clearTimeout(timer);
    // Reading the position lays the page out, which a long document must not do between a key and its frame.
    timer = setTimeout(() => whenIdle(keepScroll), 150);
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const url = new URL(link.href, location.href);
    if (link.target || link.hasAttribute("download") || url.origin !== location.origin || OUTSIDE.test(url.pathname)) return;
    event.preventDefault();
    go(url.pathname + url.search + url.hash);
  });
}
