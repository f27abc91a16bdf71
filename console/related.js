// What belongs to a deal or a project: its documents, its tasks and its tickets.
import { useLoad } from "./api.js";
import { a, h, li, span, ul } from "./html.js";
import { Button, Card, Empty } from "./parts.js";
import { addressOf, can, may, tables } from "./schema.js";
import { RelatedLine } from "./value.js";
import { t, tableName, word } from "./words.js";

/** @typedef {import("./api.js").Item} Item */

/** @type {Record<string, string>} */
const TABLES = { invoice: "invoices", quote: "quotes", workorder: "workorders" };

/** The documents of a deal or a project, of all three kinds.
 * @param {{ path: string, link: string, item: Item }} properties */
export function Documents({ path, link, item }) {
  const loaded = useLoad(may("invoices.read") ? `${path}/documents` : null);
  if (!loaded.answer) return null;
  const rows = /** @type {Item[]} */ (loaded.answer.data);
  const query = `?${link}=${item.id}${item.client_id ? `&client_id=${item.client_id}` : ""}`;
  const news = ["quotes", "invoices"].map((key) => tables[key]).filter((one) => one !== undefined).filter((one) => can(one, "create"))
    .map((one) => h(Button, { key: one.key, small: true, icon: "plus", href: `${one.address}/new${query}`, name: word([`new.${one.key}`], "") }, tableName(one.key, 1)));
  return h(Card, { title: [t("client.documents"), rows.length ? span({ key: "count", class: "count" }, ` ${rows.length}`) : null], actions: rows.length ? news : null },
    rows.length === 0 ? h(Empty, { icon: "invoices", title: t("related.no_documents") }, news) : ul({ class: "related" }, rows.map((row) => {
      const table = tables[TABLES[row.type] ?? ""];
      return table ? li({ key: row.id }, a({ href: addressOf(row.path) }, h(RelatedLine, { table, row }))) : null;
    })));
}

/** Records of one kind that refer to a deal or a project.
 * @param {{ table: string, link: string, item: Item, always?: boolean }} properties `always`: also if there are none. */
export function RelatedRecords({ table: key, link, item, always }) {
  const table = tables[key];
  const loaded = useLoad(table && can(table, "list") ? `${table.path}?${link}=${item.id}${table.pages ? "&per_page=20" : ""}` : null);
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  if (!table || !loaded.answer || (rows.length === 0 && !always)) return null;
  const add = can(table, "create") ? h(Button, { small: true, icon: "plus", href: `${table.address}/new?${link}=${item.id}${item.client_id ? `&client_id=${item.client_id}` : ""}${key === "phases" ? `&order=${rows.length + 1}` : ""}`, name: `${t("new")}: ${tableName(key, 1).toLowerCase()}` }, t("new")) : null;
  return h(Card, { title: [tableName(key), rows.length ? span({ key: "count", class: "count" }, ` ${loaded.answer.meta.total ?? rows.length}`) : null], actions: rows.length ? add : null },
    rows.length === 0 ? h(Empty, { icon: key, title: word([`related.no_${key}`], t("client.nothing")) }, add) : ul({ class: "related" }, rows.map((row) => li({ key: row.id }, a({ href: `${table.address}/${row.id}` }, h(RelatedLine, { table, row }))))));
}
