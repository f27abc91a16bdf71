// Live updates: the event stream is open only while the page is visible. An event reloads what is on the screen quietly, at
// most every two seconds, and never while somebody types.
import { reloadAll } from "./api.js";
import { isField } from "./keys.js";
import { may } from "./schema.js";

const PAUSE = 2000;
/** @type {EventSource | null} */
let stream = null;
let lastSeq = "";
let timer = 0;

export function startLive() {
  if (!may("audit.read")) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  open();
}

function open() {
  if (stream || document.hidden) return;
  stream = new EventSource(`/console/v1/events/stream?data=0${lastSeq ? `&after=${lastSeq}` : ""}`);
  // Every event has its own type; the default handler sees none of them.
  for (const type of TYPES) stream.addEventListener(type, heard);
  stream.onmessage = heard;
}

function close() {
  stream?.close();
  stream = null;
}

/** @param {MessageEvent} event */
function heard(event) {
  lastSeq = event.lastEventId || lastSeq;
  if (timer) return;
  timer = setTimeout(() => {
    timer = 0;
    if (!isField(document.activeElement)) reloadAll();
  }, PAUSE);
}

const VERBS = ["created", "updated", "deleted"];
const KINDS = ["invoice", "quote", "workorder", "customer", "deal", "ticket", "task", "project", "product", "subscription", "payment", "note", "file", "flow", "user", "settings"];
const FURTHER = ["invoice.paid", "invoice.sent", "invoice.finalized", "invoice.late", "quote.accepted", "quote.rejected", "quote.sent", "deal.won", "deal.lost", "deal.phase_changed", "ticket.message", "ticket.inbound_message", "task.completed", "task.reopened"];
const TYPES = [...KINDS.flatMap((kind) => VERBS.map((verb) => `${kind}.${verb}`)), ...FURTHER];
