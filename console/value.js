// A value as people read it, by the kind of its field.
import { day, decimal, iban, money, percent, price, size } from "./format.js";
import { a, h, span } from "./html.js";
import { Icon } from "./icons.js";
import { LinkName } from "./names.js";
import { Moment, Pill } from "./parts.js";
import { tasteOf } from "./resources.js";
import { choiceName, language, t } from "./words.js";

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
    case "amount": return field.name === "hours" ? decimal(value) : money(value);
    case "price": return price(value);
    case "percent": return percent(value);
    case "integer": return field.name === "size" ? size(value) : decimal(value);
    case "boolean": return value ? span({ class: "yes" }, h(Icon, { name: "check" }), span({ class: "hidden" }, t("yes"))) : span({ class: "soft" }, t("no"));
    case "day": return day(value);
    case "moment": return h(Moment, { at: value });
    case "link": return field.refers ? h(LinkName, { table: field.refers, id: value, plain }) : String(value);
    case "choice": return isStatus(table, field.name) ? h(Pill, { table, field: field.name, value }) : choiceName(table, field.name, String(value));
    case "email": return plain ? value : a({ href: `mailto:${value}` }, value);
    case "website": return plain ? value : a({ href: value, target: "_blank", rel: "noreferrer" }, value.replace(/^https?:\/\//, ""));
    case "iban": return iban(value);
    case "country": return countryName(value);
    case "color": return span({ class: "swatch-line" }, span({ class: "swatch", style: { backgroundColor: value } }), value);
    case "texts": return Array.isArray(value) ? value.join(", ") : String(value);
    case "custom": return null;
    case "data": case "rows": case "lines": return null;
    default: return isStatus(table, field.name) ? h(Pill, { table, field: field.name, value }) : String(value);
  }
}

/** @param {string} table @param {string} name */
const isStatus = (table, name) => tasteOf(table).status === name || name === "status" || name === "priority" && table === "deals";
