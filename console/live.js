// Live updates: the event stream is open only while the page is visible. An event reloads what is on the screen quietly, at
// most every two seconds. While somebody types, only screens that keep what is being typed are reloaded; the rest follows.
import { get, reloadAll, user } from "./api.js";
import { isField } from "./keys.js";
import { may } from "./schema.js";

const PAUSE = 2000;
const OPEN_AGAIN = 10_000;
/** One change is often several events. */
const SOON = 150;
/** @type {EventSource | null} */
let stream = null;
/** Where the page was drawn; later, where the stream is. */
let lastSeq = document.documentElement.dataset.seq ?? "";
let timer = 0;
let lastReload = 0;
/** Whether something was not reloaded because somebody typed. */
let behind = false;

export function startLive() {
  if (!may("audit.read")) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  document.addEventListener("focusout", () => setTimeout(() => { if (behind && !isField(document.activeElement)) reload(); }));
  open();
}

function open() {
  if (stream || document.hidden) return;
  stream = new EventSource(`/console/v1/events/stream?data=0&named=0${lastSeq ? `&after=${lastSeq}` : ""}${user ? `&for_user=${user}` : ""}`);
  stream.addEventListener("error", refused);
  stream.addEventListener("message", heard);
}

/** A browser gives up a stream that is refused. A request says why: the session has ended, or is another user's now. */
function refused() {
  if (stream?.readyState !== EventSource.CLOSED) return;
  close();
  get("/v1/me", { quiet: true }).then(() => setTimeout(open, OPEN_AGAIN), () => {});
}

function close() {
  stream?.close();
  stream = null;
}

/** @param {MessageEvent} event */
function heard(event) {
  lastSeq = event.lastEventId || lastSeq;
  timer ||= setTimeout(reload, Math.max(SOON, lastReload + PAUSE - Date.now()));
}

function reload() {
  timer = 0;
  lastReload = Date.now();
  behind = isField(document.activeElement);
  reloadAll({ live: true, typing: behind });
}
