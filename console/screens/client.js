// The page of a client: how to reach them, what is open, and everything that is done for them.
import { useEffect, useState } from "preact/hooks";
import { useLoad } from "../api.js";
import { Missing } from "../missing.js";
import { groupsOf, useCustomFields } from "../form.js";
import { day, dayOf, iban, moneyOfCents, plusDays, today } from "../format.js";
import { History } from "../history.js";
import { mergeMenu } from "../merge.js";
import { Notes } from "../notes.js";
import { a, div, h, li, span, strong, ul } from "../html.js";
import { useKeys } from "../keys.js";
import { cents } from "../money.js";
import { Button, Card, Empty, Facts, Head, Menu, Problem, Skeleton, Tabs } from "../parts.js";
import { Mandate } from "./mandate.js";
import { People } from "./people.js";
import { go } from "../router.js";
import { can, fieldOf, itemPath, may, tables, titleOf, valueOf } from "../schema.js";
import { RelatedLine, Value, countryName } from "../value.js";
import { NEW_KEYS } from "../shell.js";
import { fieldName, t, tableName, word } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

const TABS = ["", "documents", "deals", "tickets", "projects", "tasks", "subscriptions", "notes", "files", "people", "details"];
/** @type {Record<string, string[]>} */
const SHOWN = { "": ["invoices", "quotes", "tickets", "tasks", "deals"], documents: ["invoices", "quotes", "workorders"], deals: ["deals"], tickets: ["tickets"], projects: ["projects"], tasks: ["tasks"], subscriptions: ["subscriptions"] };

/** @param {{ table: Table, id: string, part: string }} properties */
export function ClientPage({ table, id, part }) {
  const loaded = useLoad(itemPath(table, id));
  const news = ["invoices", "quotes", "deals", "tickets", "tasks", "projects", "subscriptions", "workorders"].map((key) => tables[key]).filter((one) => one !== undefined).filter((one) => can(one, "create"));
  useKeys(news.map((one) => ({ key: `n ${NEW_KEYS[one.key] ?? "?"}`, label: word([`new.${one.key}`], ""), run: () => go(`${one.address}/new?client_id=${id}`) })));
  useKeys(can(table, "patch") ? [{ key: "e", label: t("edit"), run: () => go(`${table.address}/${id}/edit`) }] : []);
  if (loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (!loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 10 }));
  const item = loaded.answer.data;
  const name = titleOf(table, item);
  const person = item.company_name ? [item.firstname, item.lastname].filter(Boolean).join(" ") : "";
  return div({ class: "page client" },
    h(Head, { over: a({ href: table.address }, tableName(table.key)), title: name, beside: [person ? span({ key: "person", class: "soft" }, person) : null] },
      item.phone ? h(Button, { icon: "phone", href: `tel:${item.phone.replace(/[^+\d]/g, "")}`, label: item.phone }, t("client.call")) : null,
      item.email ? h(Button, { icon: "mail", href: `mailto:${item.email}`, label: item.email }, t("client.mail")) : null,
      h(Menu, { label: t("new"), name: `${t("new")}: ${name}`, icon: "plus", primary: true, showLabel: true, items: news.map((one) => ({ label: tableName(one.key, 1), icon: one.key, href: `${one.address}/new?client_id=${id}` })) }),
      can(table, "patch") ? h(Button, { icon: "edit", label: t("edit"), href: `${table.address}/${id}/edit` }) : null,
      h(Menu, { label: t("more"), icon: "more", items: mergeMenu(table, item, loaded.answer.etag) })),
    may("invoices.read") ? h(Sums, { id }) : null,
    h(Tabs, { label: name, items: TABS.filter((tab) => (tab !== "people" || (item.type ?? "company") === "company") && (tab !== "files" || may("files.read"))).map((tab) => ({ href: `${table.address}/${id}${tab ? `/${tab}` : ""}`, current: tab === part, label: tab === "" ? t("client.overview") : word([`client.${tab}`], tableName(tab)) })) }),
    div({ class: "columns" },
      div({ class: "column-main" }, part === "details" ? [...details(table, item), h(Custom, { key: "custom", table, item })] : part === "people" ? h(People, { id }) : part === "files" ? h(Files, { id }) : part === "notes" ? h(Notes, { about: "client_id", id }) : (SHOWN[part] ?? []).map((key) => h(Related, { key, table: key, id, few: part === "", alone: (SHOWN[part] ?? []).length === 1 }))),
      div({ class: "column-side" }, h(Reach, { item }), h(Mandate, { client: item }), part === "" ? h(Notes, { about: "client_id", id }) : null, h(History, { table, item }))));
}

/** Loaded when it is opened.
 * @param {{ id: string }} properties */
function Files({ id }) {
  const [shown, setShown] = useState(/** @type {typeof import("./client_files.js") | null} */ (null));
  useEffect(() => { void import("./client_files.js").then(setShown); }, []);
  return shown ? h(shown.ClientFiles, { id }) : h(Skeleton, { rows: 3 });
}

/** @param {{ id: string }} properties */
function Sums({ id }) {
  const statuses = (tables.invoices ? fieldOf(tables.invoices, "payment_status")?.choices : undefined) ?? [];
  const open = `client_id=${id}&payment_status=open,overdue,partial`;
  return div({ class: "tiles" },
    h(Tile, { name: t("client.open"), query: open, sum: "open_amount" }),
    h(Tile, { name: t("client.overdue"), query: `${open}&due_date_to=${plusDays(today(), -1)}&collected=false`, sum: "open_amount", bad: true }),
    h(Tile, { name: t("client.paid_year"), query: `client_id=${id}&date_from=${today().slice(0, 4)}-01-01&payment_status=${statuses.filter((one) => one !== "draft").join()}`, sum: "total_incl_vat" }));
}

/** What the invoices of a list add up to, and the way to that list.
 * @param {{ name: string, query: string, sum: string, bad?: boolean }} properties */
function Tile({ name, query, sum, bad }) {
  const { answer } = useLoad(`/v1/invoices?${query}&per_page=1&sums=${sum}`);
  const amount = cents(answer?.meta.sums?.[sum]);
  // What is not known is not zero.
  return a({ class: bad && amount > 0n ? "tile bad" : "tile", href: `/invoices?${query}` }, span({ class: "soft" }, name), strong(null, answer ? moneyOfCents(amount) : "–"));
}

/** Records of one kind that belong to the client.
 * @param {{ table: string, id: string, few: boolean, alone: boolean }} properties */
export function Related({ table: key, id, few, alone }) {
  const table = tables[key];
  const loaded = useLoad(table && can(table, "list") ? `${table.path}?client_id=${id}&per_page=${few ? 4 : 50}` : null);
  // On the first tab, one message is enough.
  if (table && loaded.error && !loaded.answer && (!few || key === "invoices")) return h(Problem, { error: loaded.error, retry: loaded.reload });
  if (!table || !loaded.answer) return null;
  const rows = /** @type {Item[]} */ (loaded.answer.data);
  const total = loaded.answer.meta.total ?? rows.length;
  if (rows.length === 0 && few) return key === "invoices" && can(table, "create") ? h(Card, { class: "only-child" }, h(Empty, { icon: "clients", title: t("client.nothing"), text: t("client.nothing_text") }, ["invoices", "quotes"].map((one) => h(Button, { key: one, primary: one === "invoices", icon: "plus", href: `/${one}/new?client_id=${id}` }, word([`new.${one}`], ""))))) : null;
  const add = can(table, "create") ? h(Button, { small: true, icon: "plus", href: `${table.address}/new?client_id=${id}`, name: `${t("new")}: ${tableName(key, 1).toLowerCase()}` }, t("new")) : null;
  if (rows.length === 0) return h(Card, { title: tableName(key) }, h(Empty, { icon: key, title: t("client.nothing") }, add));
  return h(Card, { title: [tableName(key), span({ class: "count" }, ` ${total}`)], actions: [total > rows.length ? a({ key: "all", href: `${table.address}?client_id=${id}` }, t("tab.all")) : null, add] },
    ul({ class: "related" }, rows.map((row) => li({ key: row.id }, a({ href: `${table.address}/${row.id}` }, h(RelatedLine, { table, row }))))));
}

/** @param {{ item: Item }} properties */
function Reach({ item }) {
  const address = [item.address, [item.zipcode, item.city].filter(Boolean).join(" "), item.country && item.country !== "NL" ? countryName(item.country) : ""].filter(Boolean).join("\n");
  const since = item.meta?.created_at ? dayOf(item.meta.created_at) : "";
  return h(Card, { title: t("facts") }, h(Facts, { facts: [
    [t("field.email"), item.email ? a({ href: `mailto:${item.email}` }, item.email) : ""], [t("field.phone"), item.phone ? a({ href: `tel:${item.phone.replace(/[^+\d]/g, "")}` }, item.phone) : ""], [t("group.address"), address],
    [t("field.debtor_number"), item.debtor_number], [t("field.payment_term"), item.payment_term], [t("field.company_registration_number"), item.company_registration_number], [t("field.vat_number"), item.vat_number], [t("field.iban"), item.iban ? iban(item.iban) : ""], [t("field.created_at"), day(since)],
  ] }));
}

/** @param {{ table: Table, item: Item }} properties */
function Custom({ table, item }) {
  const fields = useCustomFields(table).filter((field) => item.custom_fields?.[field.key] !== undefined);
  if (fields.length === 0) return null;
  return h(Card, { title: tableName("custom_fields") }, h(Facts, { facts: fields.map((field) => /** @type {[string, import("../html.js").View]} */ ([field.label, h(Value, { table: "custom", field, value: item.custom_fields[field.key] })])) }));
}

/** @param {Table} table @param {Item} item */
function details(table, item) {
  const fields = table.fields.filter((field) => field.in?.includes("detail") && !["custom", "data"].includes(field.kind));
  const filled = fields.filter((field) => valueOf(item, field.name) !== "" && valueOf(item, field.name) !== null);
  return groupsOf(table, filled).map(([name, group]) => h(Card, { key: name, title: word([`group.${name}`], name) },
    h(Facts, { facts: group.map((field) => /** @type {[string, import("../html.js").View]} */ ([fieldName(table.key, field.name), h(Value, { table: table.key, field, value: valueOf(item, field.name) })])) })));
}
