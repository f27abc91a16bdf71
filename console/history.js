// What happened to a record, newest first.
import { useState } from "preact/hooks";
import { useLoad } from "./api.js";
import { ChangeLine, told } from "./change.js";
import { button, h, li, ol, p } from "./html.js";
import { Card } from "./parts.js";
import { itemPath } from "./schema.js";
import { t } from "./words.js";

const FEW = 6;
/** A line is told by what was there before. */
const MORE = 2;
const MANY = 100;
const SENT = "sales.document_sent";

/** @param {{ table: import("./schema.js").Table, item: import("./api.js").Item }} properties */
export function History({ table, item }) {
  const [all, setAll] = useState(false);
  const loaded = useLoad(`${itemPath(table, item.id)}/history?per_page=${all ? MANY : FEW + MORE}`);
  const changes = /** @type {import("./api.js").Item[]} */ (loaded.answer?.data ?? []);
  const total = loaded.answer?.meta.total ?? changes.length;
  const lines = told(changes);
  // Mail that this server stored was not sent.
  const sent = changes.some((change) => change.type === SENT);
  const mails = /** @type {import("./api.js").Item[]} */ (useLoad(sent ? `${itemPath(table, item.id)}/deliveries` : null).answer?.data ?? []);
  const stored = (/** @type {import("./api.js").Item} */ change) => change.type === SENT && mails.some((mail) => mail.status === "stored" && mail.created_at === change.timestamp);
  if (loaded.error) return null;
  return h(Card, { title: t("history"), class: "history" },
    loaded.answer && changes.length === 0 ? p({ class: "soft" }, t("history.none")) : ol({ class: "changes" }, lines.slice(0, all ? MANY : FEW).map((change) => {
      const before = changes.find((other) => other.seq < change.seq && other.timestamp !== change.timestamp);
      return li({ key: change.seq }, h(ChangeLine, { change: stored(change) ? { ...change, type: "sales.document_stored" } : change, before: before ?? (changes.length === total ? { data: null } : undefined) }));
    })),
    !all && (total > changes.length || lines.length > FEW) ? button({ type: "button", class: "link", onClick: () => setAll(true) }, t("history.all", { n: total })) : null);
}
