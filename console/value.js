// A value as people read it, by the kind of its field; and the names of linked records, which are collected and asked with
// one request per kind.
import { signal } from "@preact/signals";
import { get } from "./api.js";
import { day, dayOf, decimal, iban, money, percent, price, size } from "./format.js";
import { a, div, h, img, span } from "./html.js";
import { Icon, Moment, Pill } from "./parts.js";
import { tasteOf } from "./resources.js";
import { can, tables, titleOf, valueOf } from "./schema.js";
import { choiceName, fieldName, given, language, said, t, tableName, word } from "./words.js";

/** @typedef {import("./schema.js").Field} Field */

export const isNumeric = (/** @type {Field} */ field) => ["amount", "price", "percent", "integer"].includes(field.kind);

let countries = /** @type {Intl.DisplayNames | null} */ (null);
/** @param {string} code */
export function countryName(code) {
  countries ??= new Intl.DisplayNames(language, { type: "region" });
  return /^[A-Z]{2}$/.test(code) ? (countries.of(code) ?? code) : code;
}

/** @param {{ table: string, field: Field, value: any, plain?: boolean }} properties `plain` leaves out links, for rows that are links themselves. */
export function Value({ table, field, value, plain }) {
  if (value === null || value === undefined || value === "") return null;
  switch (field.kind) {
    case "amount": return table === "tax_rates" ? percent(value) : field.name === "hours" ? decimal(value) : money(value);
    case "price": return price(value);
    case "percent": return percent(value);
    case "integer": return field.name === "size" ? size(value) : decimal(value);
    case "boolean": return value ? span({ class: "yes" }, h(Icon, { name: "check" }), span({ class: "hidden" }, t("yes"))) : span({ class: "soft" }, t("no"));
    case "day": return day(value);
    case "moment": return h(Moment, { at: value });
    case "link": return field.name === "logo_file_id" && !plain ? img({ class: "logo", src: `/console/v1/files/${value}/content`, alt: fieldName(table, field.name) }) : field.refers ? h(LinkName, { table: field.refers, id: value, plain }) : String(value);
    case "choice": return isStatus(table, field.name) ? h(Pill, { table, field: field.name, value }) : choiceName(table, field.name, String(value));
    case "email": return plain ? value : a({ href: `mailto:${value}` }, value);
    case "website": return plain ? value : a({ href: value, target: "_blank", rel: "noreferrer" }, value.replace(/^https?:\/\//, ""));
    case "iban": return iban(value);
    case "country": return countryName(value);
    case "color": return span({ class: "swatch-line" }, span({ class: "swatch", style: { backgroundColor: value } }), value);
    case "texts": return Array.isArray(value) ? (field.name === "scopes" ? scopesText(value) : value.map((one) => word([`choice.${field.name}.${one}`], field.name === "events" ? eventsName(one) : one)).join(", ")) : String(value);
    case "custom": return null;
    case "data": case "rows": case "lines": return null;
    default: if (field.name === "content_type") return fileType(String(value));
      if (field.name === "trigger_key") return word([`trigger.${value}`], String(value));
      if (field.name === "check_result") return said(String(value)) || String(value);
      return isStatus(table, field.name) ? h(Pill, { table, field: field.name, value }) : String(value);
  }
}

/** Events as people say them: those of invoices for invoice.*.
 * @param {string} pattern */
const eventsName = (pattern) => { const kind = Object.values(tables).find((table) => !table.parent && `${table.events}.*` === pattern); return kind ? tableName(kind.key) : pattern; };

/** The type of a file as people know it: application/pdf is a PDF.
 * @param {string} type */
export function fileType(type) {
  if (type === "application/pdf") return "PDF";
  const kind = FILE_TYPES.find(([, pattern]) => pattern.test(type))?.[0] ?? "other";
  const short = /^(image|text|application)\/(png|jpeg|gif|webp|csv|xml|zip)$/.exec(type)?.[2];
  return t(/** @type {any} */ (`file.type.${kind}`)) + (short ? ` (${short.toUpperCase()})` : "");
}

/** @type {[string, RegExp][]} */
const FILE_TYPES = [["image", /^image/], ["audio", /^audio/], ["video", /^video/], ["sheet", /csv|excel|spreadsheet/], ["document", /word|opendocument|rtf/], ["archive", /zip|tar|compress/], ["program", /msdownload|executable|x-sh|mach-binary|java-archive/], ["text", /^text|json|xml/]];

/** @param {string} table @param {string} name */
export const isStatus = (table, name) => tasteOf(table).status === name || name === "status" || name === "priority" && table === "deals";

/** Scopes as people say them: everything, reading everything, or the areas.
 * @param {string[]} scopes */
export function scopesText(scopes) {
  if (scopes.includes("*")) return t("scope.all");
  const areas = [...new Set(scopes.map((scope) => scope.split(".")[0] ?? ""))];
  const names = areas.map((area) => {
    const name = word([`area.${area}`], area);
    return scopes.includes(`${area}.write`) ? name : t("scope.only_read", { area: name });
  });
  return names.length > 3 ? t("scope.more", { areas: names.slice(0, 2).join(", "), n: names.length - 2 }) : names.join(", ");
}

// Names of linked records.

/** @typedef {import("./api.js").Item} Item */

/** @type {Map<string, import("@preact/signals").Signal<Item | null | undefined>>} */
const known = new Map();
/** @type {Map<string, Set<string>>} */
let wanted = new Map();
const MAX_IDS = 100;

/** A signal of a linked record: undefined until it is there, null if there is none.
 * @param {string} table @param {string} id */
export function linked(table, id) {
  const key = `${table} ${id}`;
  let found = known.get(key);
  if (!found) {
    found = signal(/** @type {Item | null | undefined} */ (undefined));
    known.set(key, found);
    if (wanted.size === 0) queueMicrotask(ask);
    wanted.set(table, (wanted.get(table) ?? new Set()).add(id));
  }
  return found;
}

/** @param {string} table @param {Item} item */
export function learn(table, item) {
  const found = known.get(`${table} ${item.id}`);
  if (found) found.value = item;
  else known.set(`${table} ${item.id}`, signal(/** @type {Item | null | undefined} */ (item)));
}

function ask() {
  const asked = wanted;
  wanted = new Map();
  for (const [name, ids] of asked) {
    const table = tables[name];
    const all = [...ids];
    for (let start = 0; start < all.length; start += MAX_IDS) {
      const some = all.slice(start, start + MAX_IDS);
      const path = table && can(table, "list") ? `${table.path}?id=${some.join(",")}&per_page=${MAX_IDS}` : "";
      const answer = path ? get(path, { quiet: true }).then((found) => /** @type {Item[]} */ (found.data)) : Promise.resolve([]);
      answer.catch(() => /** @type {Item[]} */ ([])).then((items) => {
        const byId = new Map(items.map((item) => [item.id, item]));
        for (const id of some) linked(name, id).value = byId.get(id) ?? null;
      });
    }
  }
}

/** Records that a new account has already. */
const NAMED = new Set(["pipelines", "phases", "deal_sources", "flows", "payment_terms", "keys"]);

/** A name in the reader's language, if a new account has a record with it.
 * @param {string} table @param {string} name */
export const ownName = (table, name) => (table === "ticket_statuses" ? word([`status.${name}`], name) : NAMED.has(table) ? given(name) : name);

/** The name of a linked record, as a link.
 * @param {{ table: string, id: string | null | undefined, plain?: boolean }} properties */
export function LinkName({ table, id, plain }) {
  if (!id) return null;
  const item = linked(table, id).value;
  const kind = tables[table];
  if (item === undefined) return span({ class: "loading-name" }, "\u00a0");
  if (!item || !kind) return span({ class: "soft" }, "–");
  const name = ownName(table, titleOf(kind, item)) || "–";
  return plain ? span(null, name) : a({ href: `${kind.address}/${id}` }, name);
}

/** The record that a run is about.
 * @param {Item} run @returns {{ kind: import("./schema.js").Table | undefined, item: Item | null | undefined }} */
export function aboutOf(run) {
  const kind = Object.values(tables).find((one) => one.one === run.entity_type);
  const id = valueOf(run, "entity_id");
  return { kind, item: kind && id ? linked(kind.key, id).value : null };
}

/** @param {{ run: Item, plain?: boolean }} properties */
export function AboutName({ run, plain }) {
  const { kind, item } = aboutOf(run);
  if (!kind || !item) return span({ class: "soft" }, kind && item === null ? tableName(kind.key, 1) : "\u00a0");
  const name = [...new Set([shortNumber(String(item.number ?? "")), item.title || item.subject || shortNumber(titleOf(kind, item))])].filter(Boolean).join(" · ") || tableName(kind.key, 1);
  return plain ? span(null, name) : a({ href: `${kind.address}/${item.id}` }, name);
}

/** @param {{ table: string, id: string }} properties */
export const PlainName = (properties) => h(LinkName, { ...properties, plain: true });

/** The PDF of a document. Its version is in the address, since browsers keep it for an hour.
 * @param {import("./schema.js").Table} table @param {Item} item */
export const pdfOf = (table, item) => `/console${table.path}/${item.id}/pdf/content?version=${item.meta?.version ?? 0}`;

/** Drafts have a long technical number.
 * @param {string} number */
export const shortNumber = (number) => (number.startsWith("DRAFT-") ? t("document.draft") : number);

/** A record on one line, as pages list the records that belong to them.
 * @param {{ table: import("./schema.js").Table, row: Item, client?: boolean }} properties `client`: says whose it is. */
export function RelatedLine({ table, row, client }) {
  const taste = tasteOf(table.key);
  const status = taste.status ?? "status";
  const amount = taste.amount ? valueOf(row, taste.amount) : undefined;
  const when = row.invoice_date ?? row.deadline ?? row.next_generate ?? row.expected_close_date ?? (row.created_at ? dayOf(row.created_at) : "");
  return div({ class: "related-line" }, span({ class: "related-name" }, row.title ?? row.subject ?? ownName(table.key, row.name ?? titleOf(table, row))),
    span({ class: "soft related-sub" }, client && row.client_id ? [h(LinkName, { key: "client", table: "clients", id: row.client_id, plain: true }), " · "] : null, [row.number && !String(row.number).startsWith("DRAFT-") ? shortNumber(row.number) : "", when ? day(when) : ""].filter(Boolean).join(" · ")),
    span({ class: "related-end" }, amount !== undefined ? span({ class: "amount" }, money(amount)) : null, h(Pill, { table: table.key, field: status, value: row[status] })));
}
