// Find (Ctrl K): one field for going, doing and finding.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { get } from "./api.js";
import { openDialog } from "./dialog.js";
import { dialog, div, h, input, li, span, ul } from "./html.js";
import { allShortcuts, capsOf } from "./keys.js";
import { go, recent } from "./router.js";
import { addressOf, can, tables } from "./schema.js";
import { shortNumber } from "./value.js";
import { choiceName, t, tableName, word } from "./words.js";
import { Icon } from "./parts.js";

/** @typedef {{ key: string, icon: string, label: string, detail: string, run: () => void }} Hit */
const WAIT = 150;

export function openFind() {
  if (!document.querySelector(".find")) openDialog(({ close }) => h(Find, { close }));
}

/** @param {{ close: () => void }} properties */
function Find({ close }) {
  const [typed, setTyped] = useState("");
  const [records, setRecords] = useState(/** @type {Hit[]} */ ([]));
  const [active, setActive] = useState(0);
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  // Before the next frame, so that no letter is typed elsewhere.
  useLayoutEffect(() => { box.current?.showModal(); }, []);
  useEffect(() => {
    const words = typed.trim();
    if (words.length === 0) return setRecords([]);
    const abort = new AbortController();
    const timer = setTimeout(() => void search(words, abort.signal).then(setRecords, () => {}), WAIT);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [typed]);
  const hits = [...commands(typed), ...records].slice(0, 30);
  /** @param {Hit | undefined} hit */
  const run = (hit) => { if (!hit) return; close(); hit.run(); };
  return dialog({ ref: box, class: "dialog find", "aria-label": t("find.title"), onClose: close, onClick: (event) => { if (event.target === event.currentTarget) close(); } },
    div({ class: "find-field" }, h(Icon, { name: "search" }), input({
      type: "text", role: "combobox", "aria-expanded": true, "aria-controls": "find-list", "aria-activedescendant": hits[active] ? `find-${active}` : undefined, autofocus: true,
      placeholder: t("find.title"), "aria-label": t("find.title"), value: typed,
      onInput: (event) => { setTyped(event.currentTarget.value); setActive(0); },
      onKeyDown: (event) => {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); setActive((active + (event.key === "ArrowDown" ? 1 : -1) + hits.length) % Math.max(1, hits.length)); }
        if (event.key === "Enter") { event.preventDefault(); run(hits[active]); }
      },
    })),
    ul({ class: "find-list", role: "listbox", id: "find-list", "aria-label": t("find.title") }, hits.length === 0 ? li({ class: "soft none" }, t("find.nothing")) : null,
      hits.map((hit, place) => li({ key: hit.key, id: `find-${place}`, role: "option", "aria-selected": place === active, onPointerMove: () => setActive(place), onClick: () => run(hit) },
        h(Icon, { name: hit.icon }), span(null, hit.label), span({ class: "soft" }, hit.detail)))));
}

/** @param {string} typed @returns {Hit[]} */
function commands(typed) {
  const words = typed.trim().toLowerCase();
  const all = Object.values(tables).filter((table) => !table.parent && "list" in table.verbs);
  const news = all.filter((table) => can(table, "create") && table.key !== "files").map((table) => ({ key: `new ${table.key}`, icon: "plus", label: word([`new.${table.key}`], t("new_one", { one: tableName(table.key, 1).toLowerCase() })), detail: "", run: () => go(`${table.address}/new`) }));
  const lists = all.filter((table) => can(table, "list")).map((table) => ({ key: `list ${table.key}`, icon: table.key in ICONS ? table.key : "right", label: tableName(table.key), detail: table.address.startsWith("/settings") ? t("menu.settings") : "", run: () => go(table.address) }));
  const here = allShortcuts().filter((shortcut) => !/^(n |g )/.test(shortcut.key) && shortcut.key !== "Ctrl+k").map((shortcut) => ({ key: `do ${shortcut.key}`, icon: "flows", label: shortcut.label, detail: capsOf(shortcut.key).join(" "), run: () => shortcut.run(new KeyboardEvent("keydown")) }));
  const pages = [["/", "menu.home", "home"], ["/hours", "menu.hours", "hours"], ["/settings", "menu.settings", "settings"], ["/me", "me.title", "clients"], ["/settings/mail", "mails.title", "mail"], ["/settings/audit", "audit.title", "hours"], ...["account", "documents", "payments", "sending", "security", "timers"].map((name) => [`/settings/${name}`, `settings.section.${name}`, "settings"]), ["/hours?view=approve", "hours.to_approve", "hours"]].map(([href, label, icon]) => ({ key: `page ${href}`, icon: icon ?? "", label: word([label ?? ""], ""), detail: "", run: () => go(href ?? "/") }));
  const opened = recent().filter((one) => one.path !== location.pathname).map((one) => ({ key: `recent ${one.path}`, icon: "hours", label: one.name, detail: t("find.recent"), run: () => go(one.path) }));
  if (!words) return [...opened, ...lists.filter((hit) => MAIN.includes(hit.key)), ...news.slice(0, 6)];
  const fits = (/** @type {Hit} */ hit) => hit.label.toLowerCase().includes(words);
  return [...pages.filter(fits), ...lists.filter(fits), ...news.filter(fits), ...here.filter(fits)].slice(0, 7);
}

const MAIN = ["list invoices", "list quotes", "list clients", "list deals", "list tickets", "list tasks"];
const ICONS = { invoices: 1, quotes: 1, workorders: 1, subscriptions: 1, products: 1, clients: 1, suppliers: 1, deals: 1, tickets: 1, tasks: 1, projects: 1, files: 1, flows: 1 };

/** What the server says about a record, in words: it names a status or an event as the API does.
 * @param {any} item @returns {string} */
const detailOf = (item) => (item.type === "deal" ? choiceName("deals", "status", item.detail) : item.type === "flow" ? word([`trigger.${item.detail}`], item.detail) : item.detail);

/** Records of every kind, in one request.
 * @param {string} words @param {AbortSignal} abort @returns {Promise<Hit[]>} */
async function search(words, abort) {
  const { data } = await get(`/v1/search?q=${encodeURIComponent(words)}`, { abort, quiet: true });
  // Of each kind, records with that name come before those that only mention it.
  const kinds = [...new Set(data.map((/** @type {any} */ item) => item.type))];
  const rank = (/** @type {any} */ item) => 2 * kinds.indexOf(item.type) + (String(item.name).toLowerCase().includes(words.toLowerCase()) ? 0 : 1);
  return data.sort((/** @type {any} */ one, /** @type {any} */ other) => rank(one) - rank(other)).map((/** @type {any} */ item) => {
    const table = Object.values(tables).find((one) => one.one === item.type);
    const name = shortNumber(item.name) || item.detail;
    const document = table?.names?.[0] === "number";
    return { key: item.id, icon: table && table.key in ICONS ? table.key : "right", label: document && item.detail ? `${name} · ${item.detail}` : name, detail: [table ? tableName(table.key, 1) : "", document ? "" : detailOf(item)].filter(Boolean).join(" · "), run: () => go(addressOf(item.path)) };
  });
}
