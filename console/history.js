// What happened to a record, newest first.
import { useState } from "preact/hooks";
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

/** @param {{ table: import("./schema.js").Table, item: import("./api.js").Item }} properties */
export function History({ table, item }) {
  const [all, setAll] = useState(false);
  const loaded = useLoad(`${itemPath(table, item.id)}/history?per_page=${all ? MANY : FEW + MORE}`);
  const changes = /** @type {import("./api.js").Item[]} */ (loaded.answer?.data ?? []);
  const total = loaded.answer?.meta.total ?? changes.length;
  const lines = merged(told(changes));
  // Mail that waits for office hours, or that this server stored, was not sent.
  const sent = changes.some((change) => change.type === SENT);
  const mails = /** @type {import("./api.js").Item[]} */ (useLoad(sent ? `${itemPath(table, item.id)}/deliveries` : null).answer?.data ?? []);
  /** @param {import("./api.js").Item} change */
  const mailed = (change) => {
    const own = change.type === SENT ? mails.filter((mail) => mail.created_at === change.timestamp) : [];
    const kind = own.some((mail) => mail.status === "stored") ? "stored" : own.length > 0 && own.every((mail) => UNSENT.includes(mail.status)) ? own[0]?.status === "queued" && isAhead(own[0].leaves_at) ? "waits" : "underway" : "";
    return kind ? { ...change, type: `sales.document_${kind}` } : change;
  };
  if (loaded.error) return null;
  return h(Card, { title: t("history"), class: "history" },
    loaded.answer && changes.length === 0 ? p({ class: "soft" }, t("history.none")) : ol({ class: "changes" }, lines.slice(0, all ? MANY : FEW).map((change) => {
      const before = changes.find((other) => other.seq < change.seq && other.timestamp !== change.timestamp);
      return li({ key: change.seq }, h(ChangeLine, { change: mailed(change), before: before ?? (changes.length === total ? { data: null } : undefined) }));
    })),
    !all && (total > changes.length || lines.length > FEW) ? button({ type: "button", class: "link", onClick: () => setAll(true) }, t("history.all", { n: total })) : null);
}
