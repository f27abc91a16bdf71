// Find (Ctrl K): one field for going, doing and finding.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api.js";
import { secondLine } from "./combobox.js";
import { openDialog } from "./dialog.js";
import { dialog, div, h, input, li, span, ul } from "./html.js";
import { allShortcuts } from "./keys.js";
import { go } from "./router.js";
import { can, tables, titleOf } from "./schema.js";
import { t, tableName, word } from "./words.js";
import { Icon } from "./parts.js";

/** @typedef {{ key: string, icon: string, label: string, detail: string, run: () => void }} Hit */
const SEARCHED = ["clients", "invoices", "quotes", "deals", "tickets", "projects", "products", "subscriptions", "suppliers", "workorders"];
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
  useEffect(() => { box.current?.showModal(); }, []);
  useEffect(() => {
    const words = typed.trim();
    if (words.length < 2) return setRecords([]);
    const abort = new AbortController();
    const timer = setTimeout(async () => setRecords(await search(words, abort.signal)), WAIT);
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
  const all = Object.values(tables).filter((table) => !table.parent && table.verbs.list);
  const news = all.filter((table) => can(table, "create") && table.key !== "files").map((table) => ({ key: `new ${table.key}`, icon: "plus", label: word([`new.${table.key}`], t("new_one", { one: tableName(table.key, 1).toLowerCase() })), detail: "", run: () => go(`${table.address}/new`) }));
  const lists = all.filter((table) => can(table, "list")).map((table) => ({ key: `list ${table.key}`, icon: table.key in ICONS ? table.key : "right", label: tableName(table.key), detail: table.address.startsWith("/settings") ? t("menu.settings") : "", run: () => go(table.address) }));
  const here = allShortcuts().filter((shortcut) => !/^(n |g )/.test(shortcut.key) && shortcut.key !== "Ctrl+k").map((shortcut) => ({ key: `do ${shortcut.key}`, icon: "flows", label: shortcut.label, detail: shortcut.key, run: () => shortcut.run(new KeyboardEvent("keydown")) }));
  const pages = [["/", "menu.home", "home"], ["/hours", "menu.hours", "hours"], ["/settings", "menu.settings", "settings"], ["/me", "me.title", "clients"]].map(([href, label, icon]) => ({ key: `page ${href}`, icon: icon ?? "", label: word([label ?? ""], ""), detail: "", run: () => go(href ?? "/") }));
  if (!words) return [...lists.filter((hit) => MAIN.includes(hit.key)), ...news.slice(0, 6)];
  const fits = (/** @type {Hit} */ hit) => hit.label.toLowerCase().includes(words);
  return [...pages.filter(fits), ...lists.filter(fits), ...news.filter(fits), ...here.filter(fits)].slice(0, 7);
}

const MAIN = ["list invoices", "list quotes", "list clients", "list deals", "list tickets", "list tasks"];
const ICONS = { invoices: 1, quotes: 1, workorders: 1, subscriptions: 1, products: 1, clients: 1, suppliers: 1, deals: 1, tickets: 1, tasks: 1, projects: 1, files: 1, flows: 1 };

/** Records of every kind. A server without /v1/search is asked kind by kind.
 * @param {string} words @param {AbortSignal} abort @returns {Promise<Hit[]>} */
async function search(words, abort) {
  const kinds = SEARCHED.map((key) => tables[key]).filter((table) => table !== undefined).filter((table) => can(table, "list"));
  const answers = await Promise.all(kinds.map((table) => get(`${table.path}?per_page=4&search=${encodeURIComponent(words)}`, { abort, quiet: true }).then((answer) => ({ table, items: answer.data }), () => ({ table, items: [] }))));
  return answers.flatMap(({ table, items }) => items.map((/** @type {any} */ item) => ({
    key: item.id, icon: table.key, label: table.names?.[0] === "number" ? [item.number.startsWith("DRAFT-") ? t("document.draft") : item.number, item.title].join(" · ") : titleOf(table, item),
    detail: [tableName(table.key, 1), item.title ? "" : secondLine(item)].filter(Boolean).join(" · "), run: () => go(`${table.address}/${item.id}`),
  })));
}
