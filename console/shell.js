// The frame around every screen: the menu, the top bar, and what belongs to the user.
import { useEffect, useState } from "preact/hooks";
import { post, useLoad } from "./api.js";
import { choose, dropAllDrafts } from "./drafts.js";
import { a, button, div, h, header, kbd, nav, span, strong } from "./html.js";
import { useKeys } from "./keys.js";
import { Icon, Menu, onPhone, sayError } from "./parts.js";
import { forgetRecent, go, place } from "./router.js";
import { addressOf, can, may, me, tables } from "./schema.js";
import { t, tableName, word } from "./words.js";

/** @type {[string, string[]][]} */
const GROUPS = [
  ["", ["home"]],
  ["sales", ["invoices", "quotes", "workorders", "subscriptions", "products"]],
  ["relations", ["clients", "suppliers", "deals", "tickets"]],
  ["work", ["tasks", "projects", "hours"]],
  ["", ["files", "flows", "settings"]],
];

/** @param {{ close: () => void }} properties */
export function Side({ close }) {
  const path = place.value.path;
  const counted = useCounted();
  return div({ class: "side-box" }, div({ class: "scrim", onClick: close }), nav({ class: "side", "aria-label": t("menu") },
    h(Account, null),
    GROUPS.map(([group, entries]) => {
      const shown = entries.filter(allowed);
      return shown.length === 0 ? null : div({ key: group + entries[0], class: "side-group" },
        group ? div({ class: "side-title" }, word([`menu.${group}`], group)) : null,
        shown.map((entry) => {
          const href = entry === "home" ? "/" : tables[entry]?.address && entry !== "settings" ? tables[entry].address : `/${entry}`;
          const current = href === "/" ? path === "/" : [href, ...(BESIDE[entry] ?? []).map((one) => tables[one]?.address)].some((one) => one && (path === one || path.startsWith(`${one}/`)));
          const number = counted[entry];
          // A number leads to what it counts.
          return div({ key: entry, class: "side-entry" }, a({ href: href + (FIRST[entry] ?? ""), "aria-current": current ? "page" : undefined }, h(Icon, { name: entry }), span(null, word([`menu.${entry}`], tableName(entry)))),
            number?.count > 0 ? a({ class: "badge-link", href: addressOf(number.path) }, span({ class: entry === "invoices" ? "badge" : "badge calm" }, number.count > 99 ? "99+" : String(number.count), span({ class: "hidden" }, ` ${word([`badge.${entry}`], "")}`))) : null);
        }));
    })));
}

/** What an entry shows first: the PDFs of documents are files too, and most tasks are done. @type {Record<string, string>} */
const FIRST = { files: "?origin=uploaded", tasks: "?status=open&sort=deadline&order=asc" };

/** Tables without an entry of their own, by the entry that leads to them. @type {Record<string, string[]>} */
const BESIDE = { flows: ["runs"], subscriptions: ["batches"], settings: ["imports", "exports"] };

/** The numbers behind entries of the menu.
 * @returns {Record<string, any>} */
function useCounted() {
  const all = /** @type {any[]} */ (useLoad("/v1/overview").answer?.data ?? []);
  const of = (/** @type {string} */ name) => all.find((one) => one.name === name);
  return { invoices: of("invoices_overdue"), tickets: of("tickets_waiting"), flows: of("runs_to_approve") };
}

/** The account; whoever has several switches here. */
function Account() {
  const account = me.value.account;
  const others = (me.value.accounts ?? []).filter((/** @type {any} */ one) => one.id !== account.id);
  const head = [span({ class: "mark", "aria-hidden": "true" }, initials(account.name ?? "")), strong(null, account.name)];
  if (others.length === 0) return a({ class: "side-head", href: "/" }, head);
  return h(Menu, { label: t("account.switch"), quiet: true, align: "left", class: "accounts", items: others.map((/** @type {any} */ one) => ({ label: one.name, run: () => void switchAccount(one.id) })) }, head, h(Icon, { name: "down", class: "caret" }));
}

/** @param {string} id */
async function switchAccount(id) {
  try {
    await post("/account", { account_id: id }, { keep: true, anybody: true });
    location.assign("/");
  } catch (error) { sayError(error); }
}

const openFind = () => void import("./find.js").then((find) => find.openFind());
const openHelp = () => void import("./help.js").then((help) => help.openHelp());

/** @param {string} entry */
function allowed(entry) {
  if (entry === "home" || entry === "settings") return true;
  if (entry === "hours") return may("projects.read");
  const table = tables[entry];
  return table !== undefined && can(table, "list");
}

/** @param {string} name */
export const initials = (name) => name.split(/\s+/).filter((one) => /^\p{L}/u.test(one)).map((one) => one[0]?.toUpperCase()).slice(0, 2).join("");

/** @param {{ openMenu: () => void }} properties */
export function TopBar({ openMenu }) {
  const news = newTables().filter((table) => can(table, "create"));
  useKeys([
    { key: "Ctrl+k", label: t("find.title"), run: openFind, always: true },
    { key: "?", label: t("help.title"), run: openHelp },
    { key: "g h", label: t("menu.home"), run: () => go("/") },
    ...news.map((table) => ({ key: `n ${NEW_KEYS[table.key] ?? "?"}`, label: word([`new.${table.key}`], ""), run: () => go(`${table.address}/new`) })),
  ]);
  const find = t(onPhone.value ? "list.search" : "find.title");
  return header({ class: "top" },
    button({ type: "button", class: "button quiet square menu-button", "aria-label": t("menu"), onClick: openMenu }, h(Icon, { name: "menu" })),
    button({ type: "button", class: "find-button", onClick: openFind }, h(Icon, { name: "search" }), span(null, find), kbd(null, "Ctrl K")),
    div({ class: "top-end" },
      h(Bell, null),
      h(Menu, { label: t("new"), icon: "plus", showLabel: true, class: "new-menu", items: news.map((table) => ({ label: tableName(table.key, 1), icon: table.key, href: `${table.address}/new` })) }),
      h(Menu, { label: me.value.user.name ?? "", quiet: true, items: userMenu(), class: "user-menu" }, span({ class: "avatar", "aria-hidden": "true" }, initials(me.value.user.name ?? "?")), span({ class: "hidden" }, me.value.user.name))));
}

/** What needs attention, from everywhere; loaded when the first screen is there. */
function Bell() {
  const [shown, setShown] = useState(/** @type {typeof import("./attention.js") | null} */ (null));
  useEffect(() => { const timer = setTimeout(() => void import("./attention.js").then(setShown), BELL_AFTER); return () => clearTimeout(timer); }, []);
  return shown ? h(shown.BellMenu, null) : span({ class: "bell" });
}

const BELL_AFTER = 800;

/** @type {Record<string, string>} */
export const NEW_KEYS = { invoices: "i", quotes: "q", clients: "c", tasks: "t", deals: "d", tickets: "s", products: "p", subscriptions: "a", projects: "r" };

function userMenu() {
  const dark = document.documentElement.dataset.theme === "dark" || (document.documentElement.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  return [
    { label: me.value.user.name ?? "", href: "/me", icon: "person" },
    { label: dark ? t("theme.light") : t("theme.dark"), icon: "settings", run: () => { const next = dark ? "light" : "dark"; choose("theme", next); document.documentElement.dataset.theme = next; } },
    { label: t("help.title"), icon: "keys", run: openHelp },
    { label: t("sign_out"), icon: "out", run: () => void signOut() },
  ];
}

async function signOut() {
  dropAllDrafts();
  forgetRecent();
  await fetch("/console/sign-out", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
  location.assign("/sign-in");
}

/** The tables that can be filled from the New menu. */
const newTables = () => ["invoices", "quotes", "clients", "tasks", "deals", "tickets", "products", "subscriptions", "projects"].map((key) => tables[key]).filter((table) => table !== undefined);
