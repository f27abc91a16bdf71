// The start: the words, the schema and the caller, then the frame and the screen of the address.
import { render } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { busy, finishDeletions, outdated } from "./api.js";
import { chosen } from "./drafts.js";
import { a, div, h, main, span, strong } from "./html.js";
import { startKeys } from "./keys.js";
import { Button, Problem, Progress, Skeleton, Toasts, sayError } from "./parts.js";
import { place, startRouter } from "./router.js";
import { can, loadSchema, me, tableAt } from "./schema.js";
import { Side, TopBar } from "./shell.js";
import { loadRest, loadWords, t, tableName } from "./words.js";

async function start() {
  await Promise.all([loadSchema(), loadWords()]);
  applyTheme();
  startRouter();
  finishDeletions(sayError);
  startKeys();
  // With its screen, so that the frame is not painted without it first.
  await open(routeOf(place.value.path)).catch(() => {});
  const root = document.getElementById("app");
  root?.replaceChildren();
  if (root) render(h(App, null), root);
  setTimeout(() => void loadRest().catch(() => {}), REST_AFTER);
  setTimeout(() => void import("./live.js").then(({ startLive }) => startLive()), LIVE_AFTER);
}

/** What other screens need is loaded when the first one is there. */
const REST_AFTER = 400;

/** Live updates begin when the first screen is there. */
const LIVE_AFTER = 1500;

function App() {
  const [drawer, setDrawer] = useState(false);
  const route = routeOf(place.value.path);
  useEffect(() => { setDrawer(false); }, [place.value.path]);
  useEffect(() => {
    if (!drawer) return;
    const onKey = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      setDrawer(false);
      /** @type {HTMLElement | null} */ (document.querySelector(".menu-button"))?.focus();
    };
    /** @type {HTMLElement | null} */ (document.querySelector(".side a"))?.focus();
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [drawer]);
  // Before the heading of the page, which says more, sets its own.
  useLayoutEffect(() => { document.title = `${route.title} · ${me.value.account.name ?? "Kantoor"}`; }, [route.key, route.title]);
  return div({ class: drawer ? "shell drawer-open" : "shell" },
    a({ class: "skip", href: "#main", onClick: (event) => { event.preventDefault(); document.getElementById("main")?.focus(); } }, t("skip")),
    h(Side, { close: () => setDrawer(false) }),
    h(TopBar, { openMenu: () => setDrawer(true) }),
    h(PageProgress, null),
    outdated.value ? div({ class: "notice updated", role: "status" }, span(null, t("updated")), h(Button, { small: true, onClick: () => location.reload() }, t("updated.reload"))) : null,
    main({ id: "main", tabIndex: -1, inert: drawer || undefined }, me.value.account.test_clock ? h(Clock, null) : null, h(Screen, { key: route.key, route })),
    h(Toasts, null));
}

/** @typedef {() => import("./html.js").Children} Draw */
/** @type {Map<string, Draw>} Screens that have been opened, by the keys of their routes: these are drawn at once. */
const opened = new Map();
const MAX_OPENED = 100;

/** @param {Route} route @returns {Promise<Draw>} */
async function open(route) {
  const [draw] = await Promise.all([route.load(), route.first ? null : loadRest()]);
  if (opened.size >= MAX_OPENED) opened.clear();
  opened.set(route.key, draw);
  return draw;
}

/** @param {{ route: Route }} properties */
function Screen({ route }) {
  const [view, setView] = useState(/** @type {{ draw: Draw | null, error: unknown }} */ ({ draw: opened.get(route.key) ?? null, error: null }));
  useEffect(() => {
    if (view.draw) return;
    let current = true;
    open(route).then((draw) => { if (current) setView({ draw, error: null }); }, (error) => { if (current) setView({ draw: null, error }); });
    return () => { current = false; };
  }, [route.key]);
  useEffect(() => {
    // A reader of the screen hears where they are; the pointer keeps its place. A record has its heading when it is loaded.
    const main = document.getElementById("main");
    const focused = () => {
      if (document.activeElement === document.body) /** @type {HTMLElement | null | undefined} */ (main?.querySelector("h1"))?.focus({ preventScroll: true });
      return document.activeElement !== document.body;
    };
    if (!view.draw || !main || focused()) return;
    const watch = new MutationObserver(() => { if (focused()) watch.disconnect(); });
    watch.observe(main, { childList: true, subtree: true });
    return () => watch.disconnect();
  }, [view.draw, place.value.path]);
  if (view.error) return div({ class: "page" }, div({ class: "notice" }, strong(null, t("updated")), h(Button, { small: true, onClick: () => location.reload() }, t("updated.reload"))), h(Problem, { error: view.error }));
  return view.draw ? /** @type {import("./html.js").View} */ (view.draw()) : div({ class: "page" }, h(Skeleton, { rows: 10 }));
}

/** The bar of a test account is loaded for test accounts only. Its place is there before: nothing moves under the pointer. */
function Clock() {
  const [shown, setShown] = useState(/** @type {typeof import("./clock.js") | null} */ (null));
  useEffect(() => { void Promise.all([import("./clock.js"), loadRest()]).then(([module]) => setShown(module)); }, []);
  return shown ? h(shown.ClockBar, null) : div({ class: "clock" });
}

const PageProgress = () => h(Progress, { on: busy.value > 0 });

function applyTheme() {
  document.documentElement.dataset.theme = chosen("theme", "auto");
  document.documentElement.dataset.density = chosen("density", "normal");
}

// Which screen belongs to an address. Hand-made screens are modules of their own, imported when they are opened.

/** @typedef {{ key: string, title: string, first?: boolean, load: () => Promise<() => import("./html.js").Children> }} Route `first`: it does without the rest. */
/** @typedef {import("./schema.js").Table} Table */

/** @param {string} path @returns {Route} */
export function routeOf(path) {
  const table = tableAt(path);
  if (table) return ofTable(table, path.slice(table.address.length + 1).split("/").filter(Boolean));
  switch (path) {
    case "/": return { key: "home", title: t("menu.home"), first: true, load: async () => { const { Home } = await import("./screens/home.js"); return () => h(Home, null); } };
    case "/settings": return { key: "settings", title: t("menu.settings"), load: async () => { const { Settings } = await import("./screens/settings.js"); return () => h(Settings, null); } };
    case "/me": return { key: "me", title: t("me.title"), load: async () => { const { Me } = await import("./screens/me.js"); return () => h(Me, null); } };
    case "/settings/audit": return { key: "audit", title: t("audit.title"), load: async () => { const { Audit } = await import("./screens/audit.js"); return () => h(Audit, null); } };
    case "/settings/account": case "/settings/documents": case "/settings/payments": case "/settings/sending": case "/settings/security": case "/settings/timers": return settingsPage(path);
    case "/settings/mail": return { key: "mails", title: t("mails.title"), load: async () => { const { Mails } = await import("./screens/mails.js"); return () => h(Mails, null); } };
    case "/hours": return { key: "hours", title: t("menu.hours"), load: async () => { const { Hours } = await import("./screens/hours.js"); return () => h(Hours, null); } };
    default: return { key: "nowhere", title: t("missing.title"), load: async () => { const { Nowhere } = await import("./screens/nowhere.js"); return () => h(Nowhere, null); } };
  }
}

/** @param {string} path @returns {Route} */
function settingsPage(path) {
  const name = path.slice("/settings/".length);
  return { key: `settings ${name}`, title: t("menu.settings"), load: async () => { const { SettingsPage } = await import("./screens/settings.js"); return () => h(SettingsPage, { name }); } };
}

const DOCUMENTS = ["invoices", "quotes", "workorders"];

/** @param {Table} table @param {string[]} rest @returns {Route} */
function ofTable(table, rest) {
  const [id = "", part = ""] = rest;
  const many = tableName(table.key);
  if (!can(table, "list")) return forbidden(many);
  if (table.key === "exports") return { key: `exports ${id}`, title: many, load: async () => { const { Exports } = await import("./export.js"); return () => h(Exports, { table, adding: id === "new" }); } };
  if (id === "") return list(table, many);
  if (id === "new" || part === "edit") return editor(table, id === "new" ? null : id, tableName(table.key, 1));
  return page(table, id, part, tableName(table.key, 1));
}

/** @param {string} title @returns {Route} */
function forbidden(title) {
  return { key: `forbidden ${title}`, title, load: async () => { const { Forbidden } = await import("./screens/nowhere.js"); return () => h(Forbidden, null); } };
}

/** @param {Table} table @param {string} title @returns {Route} */
function list(table, title) {
  const key = `list ${table.key}`;
  if (table.key === "deals" && !new URLSearchParams(place.value.query).has("view")) {
    return { key: "board", title, load: async () => { const { Board } = await import("./screens/board.js"); return () => h(Board, { table }); } };
  }
  if (table.key === "tickets") return inbox(table, title);
  if (table.key === "files") return { key, title, load: async () => { const { Files } = await import("./screens/files.js"); return () => h(Files, { table }); } };
  if (table.key === "users") return { key, title, load: async () => { const { Users } = await import("./screens/users.js"); return () => h(Users, { table }); } };
  if (table.key === "keys") return { key, title, load: async () => { const { Keys } = await import("./screens/keys.js"); return () => h(Keys, { table }); } };
  if (table.key === "batches") return { key, title, load: async () => { const { Batches } = await import("./screens/batches.js"); return () => h(Batches, { table }); } };
  if (table.key === "imports") return { key, title, load: async () => { const { Imports } = await import("./screens/imports.js"); return () => h(Imports, { table }); } };
  if (table.key === "flows") return { key, title, load: async () => { const { Flows } = await import("./screens/flow.js"); return () => h(Flows, { table }); } };
  return { key, title, first: table.key !== "runs", load: async () => { const { ListPage } = await import("./list.js"); return () => h(ListPage, { table }); } };
}

/** @param {Table} table @param {string | null} id @param {string} title @returns {Route} */
function editor(table, id, title) {
  const key = `edit ${table.key} ${id ?? ""}`;
  if (!can(table, id ? "patch" : "create")) return forbidden(title);
  if (DOCUMENTS.includes(table.key)) return { key, title, load: async () => { const { Editor } = await import("./screens/editor.js"); return () => h(Editor, { table, id }); } };
  if (table.key === "flows") return { key, title, load: async () => { const { FlowEditor } = await import("./screens/flow_editor.js"); return () => h(FlowEditor, { table, id }); } };
  if (table.key === "imports") return { key, title, load: async () => { const { ImportPage, NewImport } = await import("./screens/imports.js"); return () => (id ? h(ImportPage, { table, id }) : h(NewImport, { table })); } };
  if (table.key === "subscriptions") return { key, title, load: async () => { const { SubscriptionEditor } = await import("./screens/subscription_editor.js"); return () => h(SubscriptionEditor, { table, id }); } };
  if (table.key === "tickets") return { key, title, load: async () => { const { TicketForm } = await import("./screens/ticket_form.js"); return () => h(TicketForm, { table, id }); } };
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
  if (table.key === "imports") return { key, title, load: async () => { const { ImportPage } = await import("./screens/imports.js"); return () => h(ImportPage, { table, id }); } };
  if (table.key === "runs") return { key, title, load: async () => { const { RunPage } = await import("./screens/flow.js"); return () => h(RunPage, { table, id }); } };
  if (table.key === "projects") return { key, title, load: async () => { const { ProjectPage } = await import("./screens/project.js"); return () => h(ProjectPage, { table, id }); } };
  if (table.key === "tickets") return inbox(table, title);
  return { key, title, load: async () => { const { DetailPage } = await import("./detail.js"); return () => h(DetailPage, { table, id }); } };
}

/** @param {Table} table @param {string} title @returns {Route} */
function inbox(table, title) {
  return { key: "inbox", title, load: async () => { const { Inbox } = await import("./screens/ticket.js"); return () => h(Inbox, { table, id: place.value.path.split("/")[2] ?? "" }); } };
}

void start();
