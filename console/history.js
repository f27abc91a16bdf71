// What happened to a record, newest first.
import { useLoad } from "./api.js";
import { h, li, ol, span } from "./html.js";
import { Card, Moment } from "./parts.js";
import { may } from "./schema.js";
import { t, word } from "./words.js";

const SHOWN = 15;

/** @param {{ table: import("./schema.js").Table, item: import("./api.js").Item }} properties */
export function History({ table, item }) {
  const loaded = useLoad(may("audit.read") ? `/v1/changes?entity_type=${table.one}&entity_id=${item.id}&before=0&limit=${SHOWN}` : null);
  // A server without these parameters ignores them and answers with everything.
  const known = loaded.answer && !(loaded.answer.meta.ignored_params ?? []).length;
  const changes = known ? /** @type {import("./api.js").Item[]} */ (loaded.answer?.data ?? []) : [];
  const own = changes.filter((change) => change.entity_id === item.id);
  const lines = own.length > 0 ? own.map((change) => ({ key: change.seq, text: eventName(change.type), at: change.timestamp })) : [
    { key: "updated", text: t("history.changed"), at: item.meta?.updated_at ?? item.updated_at },
    { key: "created", text: t("history.created"), at: item.meta?.created_at ?? item.created_at },
  ];
  const shown = lines.filter((line, place) => line.at && !(place === 0 && line.key === "updated" && line.at === lines[1]?.at));
  return h(Card, { title: t("history") }, ol({ class: "timeline" }, shown.map((line) => li({ key: line.key }, span(null, line.text), span({ class: "soft" }, h(Moment, { at: line.at }))))));
}

/** @param {string} type invoice.paid */
export const eventName = (type) => word([`event.${type}`, `event.${type.split(".")[1]}`], type.replace(/[._]/g, " "));
