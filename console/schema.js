// What the server says about its records and about the caller: schema.json and /v1/me.
import { signal } from "@preact/signals";
import { get } from "./api.js";

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} kind
 * @property {string} [doc]
 * @property {string} [in] The views that show it: list, detail.
 * @property {boolean} [meta] Whether it is in the record's meta.
 * @property {boolean} [create]
 * @property {boolean} [patch]
 * @property {boolean} [required]
 * @property {string} [filter] The parameter of the list.
 * @property {boolean} [many]
 * @property {string[]} [range]
 * @property {boolean} [sort]
 * @property {string} [refers]
 * @property {string[]} [choices]
 * @property {number} [length]
 * @property {number} [min]
 * @property {number} [max]
 * @property {unknown} [default]
 */
/** @typedef {{ name: string, path: string, scope: string, takes?: string[] }} Action */
/**
 * @typedef {object} Table
 * @property {string} key The name of the table: tax_rates.
 * @property {string} address Where it is in the console: /settings/tax-rates.
 * @property {string} one
 * @property {string} path
 * @property {string} item
 * @property {string} area
 * @property {boolean} [parent]
 * @property {string} events
 * @property {string[]} [names]
 * @property {boolean} [search]
 * @property {boolean} [pages]
 * @property {string[]} [sorts]
 * @property {Record<string, string>} verbs
 * @property {Action[]} [actions]
 * @property {Field[]} fields
 */
/** @typedef {import("./api.js").Item} Item */

/** @type {Record<string, Table>} */
export const tables = {};
/** @type {import("@preact/signals").Signal<Item>} */
export const me = signal({ account: {}, user: {}, scopes: [] });

const IN_SETTINGS = new Set(["tax_rates", "payment_terms", "corporate_identities", "custom_fields", "email_domains", "mail_templates", "webhook_endpoints",
  "pipelines", "phases", "deal_sources", "ticket_statuses", "ticket_channels", "users", "keys"]);

/** Columns that are no fields of the records of a list: see figures.js. @type {Record<string, Field[]>} */
const FIGURES = { invoices: [{ name: "open_amount", kind: "amount", in: "list detail" }], clients: [{ name: "open_amount", kind: "amount", in: "list" }], projects: [{ name: "budget_used", kind: "amount", in: "list" }] };

export async function loadSchema() {
  const assets = document.documentElement.dataset.assets ?? "";
  const [schema, caller] = await Promise.all([fetch(`${assets}/schema.json`).then((response) => response.json()), get("/v1/me")]);
  for (const [key, table] of Object.entries(schema)) {
    const last = table.path.slice(table.path.lastIndexOf("/") + 1);
    const figures = FIGURES[key] ?? [];
    const own = table.fields.filter((/** @type {Field} */ field) => figures.every((figure) => figure.name !== field.name));
    tables[key] = { ...table, fields: [...own, ...figures], key, address: IN_SETTINGS.has(key) ? `/settings/${last}` : `/${last}` };
  }
  me.value = caller.data;
}

/** Whether the caller has a scope, or one of several: `settings.write|finance.write`.
 * @param {string | undefined} scope */
export function may(scope) {
  const scopes = /** @type {string[]} */ (me.value.scopes ?? []);
  // A route that every caller may use has no scope with a point.
  return scope !== undefined && (!scope.includes(".") || scopes.includes("*") || scope.split("|").some((one) => scopes.includes(one)));
}

/** @param {Table} table @param {string} verb */
export const can = (table, verb) => verb in table.verbs && may(table.verbs[verb]);

/** @param {Table} table @param {string} name */
export const fieldOf = (table, name) => table.fields.find((field) => field.name === name);

/** Returns the value of a field, wherever the record has it.
 * @param {Item} item @param {string} name */
export const valueOf = (item, name) => item[name] !== undefined ? item[name] : item.meta?.[name];

/** The table of a console address.
 * @param {string} path */
export function tableAt(path) {
  return Object.values(tables).find((table) => !table.parent && "list" in table.verbs && (path === table.address || path.startsWith(`${table.address}/`)));
}

/** The console address of an API path: /v1/invoices?payment_status=overdue is /invoices?payment_status=overdue.
 * @param {string} path */
export function addressOf(path) {
  if (path.startsWith("/v1/mails")) return `/settings/mail${path.slice("/v1/mails".length)}`;
  const table = Object.values(tables).find((one) => path === one.path || path.startsWith(`${one.path}?`) || path.startsWith(`${one.path}/`));
  return table ? table.address + path.slice(table.path.length) : "/";
}

/** The name by which people know a record.
 * @param {Table} table @param {Item} item */
export function titleOf(table, item) {
  if (item.company_name) return String(item.company_name);
  const parts = (table.names ?? []).map((name) => valueOf(item, name)).filter(Boolean);
  return parts.join(" ") || item.title || item.number || item.code || "";
}

/** @param {Table} table @param {string} id */
export const itemPath = (table, id) => table.item.replace(/\{\w+\}$/, id);
