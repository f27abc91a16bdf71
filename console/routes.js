// Which screen belongs to an address. Hand-made screens are modules of their own, imported when they are opened.
import { h } from "./html.js";
import { place } from "./router.js";
import { tableAt, tables } from "./schema.js";
import { t, tableName } from "./words.js";

/** @typedef {{ key: string, title: string, load: () => Promise<() => import("./html.js").Children> }} Route */
/** @typedef {import("./schema.js").Table} Table */

/** @param {string} path @returns {Route} */
export function routeOf(path) {
  const table = tableAt(path);
  if (table) return ofTable(table, path.slice(table.address.length + 1).split("/").filter(Boolean));
  switch (path) {
    case "/": return { key: "home", title: t("menu.home"), load: async () => { const { Home } = await import("./screens/home.js"); return () => h(Home, null); } };
    case "/settings": return { key: "settings", title: t("menu.settings"), load: async () => { const { Settings } = await import("./screens/settings.js"); return () => h(Settings, null); } };
    case "/me": return { key: "me", title: t("me.title"), load: async () => { const { Me } = await import("./screens/me.js"); return () => h(Me, null); } };
    case "/hours": return { key: "hours", title: t("menu.hours"), load: async () => { const { Hours } = await import("./screens/hours.js"); return () => h(Hours, null); } };
    default: return { key: "nowhere", title: t("missing.title"), load: async () => { const { Nowhere } = await import("./screens/nowhere.js"); return () => h(Nowhere, null); } };
  }
}

const DOCUMENTS = ["invoices", "quotes", "workorders"];

/** @param {Table} table @param {string[]} rest @returns {Route} */
function ofTable(table, rest) {
  const [id = "", part = ""] = rest;
  const many = tableName(table.key);
  if (id === "") return list(table, many);
  if (id === "new" || part === "edit") return editor(table, id === "new" ? null : id, tableName(table.key, 1));
  return page(table, id, part, tableName(table.key, 1));
}

/** @param {Table} table @param {string} title @returns {Route} */
function list(table, title) {
  const key = `list ${table.key}`;
  if (table.key === "deals" && !new URLSearchParams(place.value.query).has("view")) {
    return { key: "board", title, load: async () => { const { Board } = await import("./screens/board.js"); return () => h(Board, { table }); } };
  }
  if (table.key === "tickets") return inbox(table, "", title);
  if (table.key === "files") return { key, title, load: async () => { const { Files } = await import("./screens/files.js"); return () => h(Files, { table }); } };
  if (table.key === "flows") return { key, title, load: async () => { const { Flows } = await import("./screens/flow.js"); return () => h(Flows, { table }); } };
  return { key, title, load: async () => { const { ListPage } = await import("./list.js"); return () => h(ListPage, { table }); } };
}

/** @param {Table} table @param {string | null} id @param {string} title @returns {Route} */
function editor(table, id, title) {
  const key = `edit ${table.key} ${id ?? ""}`;
  if (DOCUMENTS.includes(table.key)) return { key, title, load: async () => { const { Editor } = await import("./screens/editor.js"); return () => h(Editor, { table, id }); } };
  if (table.key === "flows") return { key, title, load: async () => { const { FlowEditor } = await import("./screens/flow_editor.js"); return () => h(FlowEditor, { table, id }); } };
  if (table.key === "subscriptions") return { key, title, load: async () => { const { SubscriptionEditor } = await import("./screens/subscription_editor.js"); return () => h(SubscriptionEditor, { table, id }); } };
  return { key, title, load: async () => { const { FormPage } = await import("./form.js"); return () => h(FormPage, { table, id }); } };
}

/** @param {Table} table @param {string} id @param {string} part @param {string} title @returns {Route} */
function page(table, id, part, title) {
  const key = `page ${table.key} ${id}`;
  if (DOCUMENTS.includes(table.key)) return { key, title, load: async () => { const { DocumentPage } = await import("./screens/document.js"); return () => h(DocumentPage, { table, id }); } };
  if (table.key === "subscriptions") return { key, title, load: async () => { const { SubscriptionPage } = await import("./screens/subscription.js"); return () => h(SubscriptionPage, { table, id }); } };
  if (table.key === "clients") return { key, title, load: async () => { const { ClientPage } = await import("./screens/client.js"); return () => h(ClientPage, { table, id, part: /^[a-z-]*$/.test(part) ? place.value.path.split("/")[3] ?? "" : "" }); } };
  if (table.key === "flows") return { key, title, load: async () => { const { FlowPage } = await import("./screens/flow.js"); return () => h(FlowPage, { table, id }); } };
  if (table.key === "files") return { key, title, load: async () => { const { FilePage } = await import("./screens/files.js"); return () => h(FilePage, { table, id }); } };
  if (table.key === "runs") return { key, title, load: async () => { const { RunPage } = await import("./screens/flow.js"); return () => h(RunPage, { table, id }); } };
  if (table.key === "projects") return { key, title, load: async () => { const { ProjectPage } = await import("./screens/project.js"); return () => h(ProjectPage, { table, id }); } };
  if (table.key === "tickets") return inbox(table, id, title);
  return { key, title, load: async () => { const { DetailPage } = await import("./detail.js"); return () => h(DetailPage, { table, id }); } };
}

/** @param {Table} table @param {string} id @param {string} title @returns {Route} */
function inbox(table, id, title) {
  return { key: "inbox", title, load: async () => { const { Inbox } = await import("./screens/ticket.js"); return () => h(Inbox, { table, id: place.value.path.split("/")[2] ?? id }); } };
}

/** The tables that can be filled from the New menu. */
export const newTables = () => ["invoices", "quotes", "clients", "tasks", "deals", "tickets", "products", "subscriptions", "projects"].map((key) => tables[key]).filter((table) => table !== undefined);
