// What happened to a record, newest first.
import { useEffect, useState } from "preact/hooks";
import { useLoad } from "./api.js";
import { ChangeLine, merged, told } from "./change.js";
import { isAhead } from "./format.js";
import { button, h, li, ol, p } from "./html.js";
import { Card } from "./parts.js";
import { itemPath } from "./schema.js";
import { t } from "./words.js";

const FEW = 6;
/** A line is told by what was there before. */
const MORE = 2;
const MANY = 100;
const SENT = "sales.document_sent";
const UNSENT = ["queued", "sending", "retrying"];
/** How often a mail that is underway is looked at. */
const LOOK_AGAIN = 2000;

/** @typedef {import("./api.js").Item} Item */

/** Whether a mail waits for office hours.
 * @param {Item} mail */
const waits = (mail) => mail.status === "queued" && isAhead(mail.leaves_at);

/** The mails about a record. Not all that becomes of them is in the log that screens follow.
 * @param {string | null} path @returns {Item[]} */
export function useMails(path) {
  const loaded = useLoad(path, { typing: true });
  const mails = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  useEffect(() => {
    const underway = mails.filter((mail) => UNSENT.includes(mail.status) && !waits(mail));
    if (underway.length === 0) return;
    const pause = underway.every((mail) => mail.status === "retrying") ? 5 * LOOK_AGAIN : LOOK_AGAIN;
    const timer = setInterval(() => { if (!document.hidden) loaded.reload(); }, pause);
    return () => clearInterval(timer);
  }, [loaded.answer]);
  return mails;
}

/** What became of the mails of one moment: nobody was reached until a mail server accepted them.
 * @param {Item[]} mails */
function fateOf(mails) {
  const has = (/** @type {string[]} */ ...all) => mails.some((mail) => all.includes(mail.status));
  if (has("stored", "recorded")) return "stored";
  if (has(...UNSENT)) return mails.every(waits) ? "waits" : "underway";
  if (has("failed")) return has("sent") ? "partly" : "failed";
  return has("sent") ? "mailed" : "canceled";
}

/** @param {{ table: import("./schema.js").Table, item: Item, mails?: Item[] }} properties `mails` are those about a document. */
export function History({ table, item, mails = [] }) {
  const [all, setAll] = useState(false);
  const loaded = useLoad(`${itemPath(table, item.id)}/history?per_page=${all ? MANY : FEW + MORE}`);
  const changes = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const total = loaded.answer?.meta.total ?? changes.length;
  const lines = merged(told(changes));
  // The log says when mail was put in the outbox; only its deliveries say whether it was sent.
  /** @param {Item} change */
  const mailed = (change) => {
    const own = change.type === SENT ? mails.filter((mail) => mail.created_at === change.timestamp) : [];
    return own.length > 0 ? { ...change, type: `sales.document_${fateOf(own)}` } : change;
  };
  if (loaded.error) return null;
  return h(Card, { title: t("history"), class: "history" },
    loaded.answer && changes.length === 0 ? p({ class: "soft" }, t("history.none")) : ol({ class: "changes" }, lines.slice(0, all ? MANY : FEW).map((change) => {
      const before = changes.find((other) => other.seq < change.seq && other.timestamp !== change.timestamp);
      return li({ key: change.seq }, h(ChangeLine, { change: mailed(change), before: before ?? (changes.length === total ? { data: null } : undefined) }));
    })),
    !all && (total > changes.length || lines.length > FEW) ? button({ type: "button", class: "link", onClick: () => setAll(true) }, t("history.all")) : null);
}
