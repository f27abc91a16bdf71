// A line of the log: who did what, and when; on request, what was different before.
import { useEffect, useState } from "preact/hooks";
import { get } from "./api.js";
import { day } from "./format.js";
import { a, button, div, h, span, table as tableElement, tbody, td, th, thead, tr } from "./html.js";
import { Icon, Moment } from "./parts.js";
import { tables, titleOf } from "./schema.js";
import { Value, shortNumber } from "./value.js";
import { fieldName, given, t, tableName, word } from "./words.js";

/** @typedef {import("./api.js").Item} Item */

/** @param {string} type invoice.paid */
export const eventName = (type) => word([`event.${type}`, `event.${type.split(".")[1]}`], type.replace(/[._]/g, " "));

/** What a change is called. "Updated" says little: what became different tells what was done.
 * @param {Item} change @param {Item} [before] The previous line of the record, if known. */
export function changeName(change, before) {
  const [old, now] = [flat(before?.data ?? {}), flat(change.data ?? {})];
  if (!/\.(updated|phase_changed)$/.test(change.type) || !now.payment_status) return eventName(change.type);
  if (now.finalized_at && (now.finalized_at === change.timestamp || (before?.data && !old.finalized_at))) return eventName("invoice.finalized");
  if (!before?.data) return eventName(change.type);
  if (now.paid_amount !== old.paid_amount) return eventName(now.paid_amount > old.paid_amount ? "invoice.payment_received" : "invoice.payment_reversed");
  if (now.credited_amount !== old.credited_amount) return eventName("invoice.credited");
  if (now.payment_status !== old.payment_status) return eventName(now.payment_status === "overdue" ? "invoice.late" : `invoice.${now.payment_status}`);
  return eventName(change.type);
}

/** @param {string} entity The type of record in the log: client, tax_rate. */
export const tableOf = (entity) => Object.values(tables).find((table) => table.one === entity || (entity === "api_key" && table.key === "keys"));

/** Who did it. Programs and people have names; the rest is Kantoor itself.
 * @param {Item} change */
export function actorName(change) {
  if (change.actor_type === "job") return t("actor.job");
  if (change.actor_type === "visitor") return word([`actor.${change.actor}`], t("actor.visitor"));
  if (change.actor_type === "operator") return t("actor.operator");
  if (change.actor_type === "flow") return t("actor.flow", { name: change.actor_name || "" });
  if (change.actor_type === "key") return [t("actor.key"), given(change.actor_name)].filter(Boolean).join(" ");
  return change.actor_name || t("actor.unknown");
}

/** A line that opens to show what changed.
 * @param {{ change: Item, before?: Item, children?: import("./html.js").Children }} properties `before` is the previous line of the record, if known. */
export function ChangeLine({ change, before, children }) {
  const [open, setOpen] = useState(false);
  const name = changeName(change, before);
  return div({ class: "change" },
    div({ class: "change-line" },
      button({ type: "button", class: "button quiet square small", "aria-expanded": open, "aria-label": t("change.show", { what: name }), onClick: () => setOpen(!open) }, h(Icon, { name: open ? "down" : "right" })),
      div({ class: "change-words" }, children ?? span(null, name), div({ class: "soft" }, actorName(change), " · ", h(Moment, { at: change.timestamp })))),
    open ? h(Difference, { change, before }) : null);
}

/** What a line is about, and what happened to it.
 * @param {{ change: Item, before?: Item }} properties */
export function RecordName({ change, before }) {
  const table = tableOf(change.entity_type);
  const name = table && change.data ? given(shortNumber(titleOf(table, change.data))) : "";
  const kind = table ? tableName(table.key, 1) : word([`entity.${change.entity_type}`], change.entity_type.replace(/_/g, " "));
  const opens = table && "get" in table.verbs && !table.parent && !change.type.endsWith(".deleted") && table.key !== "settings";
  return div({ class: "change-what" }, kind ? span({ class: "soft" }, `${kind}: `) : null, changeName(change, before), name ? [" · ", opens ? a({ key: "name", href: `${table.address}/${change.entity_id}` }, name) : name] : null);
}

/** One line for what happened at once: "sent" says more than the "updated" that comes with it.
 * @param {Item[]} changes */
export const told = (changes) => changes.filter((change) => !isNewDraft(change) && (!isPlain(change) || !changes.some((other) => other !== change && other.entity_id === change.entity_id && other.timestamp === change.timestamp && (!isPlain(other) || other.seq > change.seq))));

/** What Kantoor noticed again and again, one after the other, is told once: the latest time.
 * @param {Item[]} changes */
export const merged = (changes) => changes.filter((change, place) => !NOTICED.test(change.type) || changes[place - 1]?.type !== change.type || changes[place - 1]?.entity_id !== change.entity_id);
const NOTICED = /\.(no_followup|inactive|stalled|stale|silent|phase_idle|close_due|unanswered|payment_overdue)$/;

/** @param {Item} change */
const isPlain = (change) => change.type.endsWith(".updated") || change.type === "quote.phase_changed";

/** A document that was just made is a draft: nobody needs to be told.
 * @param {Item} change */
const isNewDraft = (change) => change.type === "document.draft" && Date.parse(change.timestamp) - Date.parse(change.data?.created_at ?? "") < DAY;
const DAY = 24 * 3600 * 1000;

/** At most so many lines of a record belong to one change. */
const AT_ONCE = 6;

/** @param {{ change: Item, before?: Item }} properties */
function Difference({ change, before }) {
  const [earlier, setEarlier] = useState(/** @type {Item | null | undefined} */ (before?.data));
  useEffect(() => {
    if (earlier !== undefined) return;
    get(`/v1/changes?entity_type=${change.entity_type}&entity_id=${change.entity_id}&order=desc&before=${change.seq}&limit=${AT_ONCE}`, { quiet: true })
      .then((answer) => setEarlier(answer.data.find((/** @type {Item} */ other) => other.timestamp !== change.timestamp)?.data ?? null), () => setEarlier(null));
  }, []);
  if (earlier === undefined) return div({ class: "soft change-more" }, t("busy"));
  const table = tableOf(change.entity_type);
  const lines = differences(earlier ?? {}, change.data ?? {});
  if (lines.length === 0) return div({ class: "soft change-more" }, t("change.nothing"));
  /** @param {string} name @param {unknown} value */
  const shown = (name, value) => {
    const field = table?.fields.find((one) => one.name === name);
    if (value === undefined || value === null || value === "") return span({ class: "soft" }, "–");
    if (typeof value === "object") return span({ class: "soft" }, Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join(", ") : t("change.changed"));
    if (name === "number") return shortNumber(String(value));
    if (/^\d{4}-\d\d-\d\d$/.test(String(value))) return day(String(value));
    return field && table ? h(Value, { table: table.key, field, value, plain: true }) : String(value === true ? t("yes") : value === false ? t("no") : value);
  };
  return div({ class: "change-more" }, tableElement({ class: "difference" },
    thead(null, tr(null, th({ scope: "col" }, t("change.field")), earlier ? th({ scope: "col" }, t("change.before")) : null, th({ scope: "col" }, earlier ? t("change.after") : t("change.value")))),
    tbody(null, lines.map(([name, old, now]) => tr({ key: name }, th({ scope: "row" }, fieldName(table?.key ?? "", name)), earlier ? td(null, shown(name, old)) : null, td(null, shown(name, now)))))));
}

const QUIET = new Set(["updated_at", "created_at", "version", "id", "web_url", "pdf_url", "file_url", "payment_url", "external_id"]);

/** The fields that differ, with both values. Only those with a value, for a record that is new.
 * @param {Item} before @param {Item} after @returns {[string, unknown, unknown][]} */
export function differences(before, after) {
  const [old, now] = [flat(before), flat(after)];
  return Object.keys({ ...old, ...now })
    .filter((name) => !QUIET.has(name) && JSON.stringify(old[name] ?? "") !== JSON.stringify(now[name] ?? ""))
    .map((name) => [name, old[name], now[name]]);
}

/** @param {Item} item @returns {Item} */
const flat = (item) => ({ ...item, meta: undefined, ...(typeof item.meta === "object" ? item.meta : {}) });
