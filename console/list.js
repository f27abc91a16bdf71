// The generic list. Search, filters, sort and page stand in the address, so a list is a link.
import { signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { post, useLoad } from "./api.js";
import { choose, chosen } from "./drafts.js";
import { figure, useFigures } from "./figures.js";
import { ColumnChooser, Filters, hasFilters, isOf } from "./filters.js";
import { count, daysUntil, money, moneyOfCents, plusDays, today } from "./format.js";
import { a, button, div, h, input, nav, span, table as tableElement, tbody, td, th, thead, tr } from "./html.js";
import { useKeys } from "./keys.js";
import { cents } from "./money.js";
import { Button, Empty, Head, Icon, Menu, Problem, Skeleton, Tabs, isTouched, onPhone, say, sayError } from "./parts.js";
import { tasteOf } from "./resources.js";
import { go, place, restoreScroll, setQuery, wentBack } from "./router.js";
import { can, fieldOf, tables, titleOf, valueOf } from "./schema.js";
import { Value, isNumeric, isStatus, ownName, shortNumber } from "./value.js";
import { choiceName, fieldName, loadRest, t, tableName, word } from "./words.js";

/** @typedef {import("./schema.js").Table} Table */
/** @typedef {import("./schema.js").Field} Field */
/** @typedef {import("./api.js").Item} Item */

const PER_PAGE = 50;
const MAX_COLUMNS = 7;

/** @param {{ table: Table }} properties */
export function ListPage({ table }) {
  const taste = tasteOf(table.key);
  const query = place.value.query;
  // A list that somebody reads does not move under their eyes.
  const loaded = useLoad(`${table.path}?per_page=${PER_PAGE}${query ? `&${query}` : ""}`, { typing: true, hold: (before, now) => before.data.length > 0 && idsOf(before) !== idsOf(now) });
  const add = can(table, "create") && table.key !== "files";
  // The status of an invoice that is late may be another one: whoever asks for late ones gets what the tab counts.
  const meant = tabsOf(taste).find(([name, of]) => { const now = new URLSearchParams(query); return now.get(taste.status ?? "") === name && !isOf(of, now); });
  useEffect(() => { if (meant) setQuery(Object.fromEntries(new URLSearchParams(meant[1]))); }, [query]);
  return div({ class: "page list-page" },
    h(Head, { title: tableName(table.key), over: table.address.startsWith("/settings") ? a({ href: "/settings" }, t("menu.settings")) : undefined },
      table.key === "deals" ? h(Button, { quiet: true, icon: "deals", href: "/deals" }, t("board.board")) : null,
      table.key === "subscriptions" && tables.batches && can(tables.batches, "list") ? h(Button, { quiet: true, icon: "pay", href: tables.batches.address }, tableName("batches")) : null,
      add ? h(Button, { primary: true, icon: "plus", href: `${table.address}/new` }, word([`new.${table.key}`], t("new_one", { one: tableName(table.key, 1).toLowerCase() }))) : null),
    h(StatusTabs, { table, tabs: tabsOf(taste) }),
    h(ListCard, { table, loaded, add }));
}

/** Whether the list shows what is to be done, in the order of the deadlines.
 * @param {Table} table */
function byDeadline(table) {
  const now = new URLSearchParams(place.value.query);
  return table.key === "tasks" && now.get("status") === "open" && (!now.get("sort") || (now.get("sort") === "deadline" && now.get("order") === "asc"));
}

/** The group of a task: late, today, this week, later.
 * @param {Item} task */
function deadlineGroup(task) {
  const days = task.deadline ? daysUntil(task.deadline) : Infinity;
  // The week ends on Sunday.
  return days < 0 ? "late" : days === 0 ? "today" : days <= (7 - new Date(today()).getUTCDay()) % 7 ? "week" : "later";
}
/** @param {Item} task */
const deadline = (task) => task.deadline || "9999";

/** Ticks a task, which can be undone.
 * @param {Item} task */
async function tick(task) {
  try {
    await post(`/v1/tasks/${task.id}/complete`, undefined);
    say(t("home.task_done", { title: task.title }), { undo: () => void post(`/v1/tasks/${task.id}/reopen`, undefined).catch(sayError) });
  } catch (error) { sayError(error); }
}

/** @param {import("./api.js").Answer} answer */
const idsOf = (answer) => answer.data.map((/** @type {Item} */ row) => row.id).join();

/** What others did meanwhile: "3 new", which shows them.
 * @param {{ loaded: import("./api.js").Loaded }} properties */
function News({ loaded }) {
  if (!loaded.waiting) return null;
  const known = new Set(loaded.answer?.data.map((/** @type {Item} */ row) => row.id));
  const n = loaded.waiting.data.filter((/** @type {Item} */ row) => !known.has(row.id)).length;
  return div({ class: "news", role: "status" }, button({ type: "button", class: "button small", onClick: loaded.take }, n > 0 ? t("list.n_new", { n }) : t("list.changed")));
}

/** The tabs of a list, with the days that they name.
 * @param {import("./resources.js").Taste} taste */
const tabsOf = (taste) => (taste.tabs ?? []).map(([name, query]) => /** @type {[string, string]} */ ([name, query.replace("{yesterday}", plusDays(today(), -1))]));

/** @param {{ table: Table, tabs: [string, string][] }} properties */
function StatusTabs({ table, tabs }) {
  const now = new URLSearchParams(place.value.query);
  const counts = useCounts(table, tabs);
  const names = tabs.map(([, query]) => new URLSearchParams(query).keys().next().value).filter(Boolean);
  const items = tabs.map(([name, query]) => {
    const current = query ? isOf(query, now) : names.every((one) => !now.get(one ?? ""));
    return { href: table.address + (query ? `?${query}` : ""), label: word([`tab.${table.key}.${name}`, `tab.${name}`, `status.${name}`], name), count: counts[name], current };
  });
  const own = viewsOf(table);
  const chosenView = own.find((view) => view.query === viewQuery());
  const all = [...items.map((item) => ({ ...item, current: item.current && !chosenView })), ...own.map((view) => ({ href: `${table.address}?${view.query}`, label: view.name, current: view === chosenView }))];
  if (own.length > 0 && tabs.length === 0) all.unshift({ href: table.address, label: t("tab.all"), current: !chosenView });
  return all.length === 0 ? null : h(Tabs, { items: all, label: t("list.views") });
}

/** How many records the tabs that ask for work have, asked when the rows are there.
 * @param {Table} table @param {[string, string][]} tabs @returns {Record<string, number | string>} An empty one keeps its place. */
function useCounts(table, tabs) {
  const [later, setLater] = useState(false);
  useEffect(() => { const timer = setTimeout(() => setLater(true), COUNTS_AFTER); return () => clearTimeout(timer); }, []);
  const counted = tabs.filter(([name]) => tasteOf(table.key).counted?.includes(name));
  // The tabs of a table are always the same, so the order of these calls is too.
  return Object.fromEntries(counted.map(([name, query]) => [name, useLoad(later ? `${table.path}?per_page=1&${query}` : null).answer?.meta.total || ""]));
}

const COUNTS_AFTER = 300;

/** Views are names for an address: filters, sort and search, without the page.
 * @param {Table} table @returns {{ name: string, query: string }[]} */
export const viewsOf = (table) => chosen(`views.${table.key}`, []);

export function viewQuery() {
  const query = new URLSearchParams(place.value.query);
  query.delete("page");
  return query.toString();
}

/** @param {{ table: Table, loaded: import("./api.js").Loaded, add: boolean }} properties */
function ListCard({ table, loaded, add }) {
  const selected = useSignal(/** @type {ReadonlySet<string>} */ (new Set()));
  const columns = useSignal(columnsOf(table));
  const shown = fitting(table, columns.value);
  const sorted = byDeadline(table);
  const rows = useFigures(table, useMemo(() => {
    const found = /** @type {Item[]} */ (loaded.answer?.data ?? []);
    return sorted ? [...found].sort((one, other) => deadline(one).localeCompare(deadline(other))) : found;
  }, [loaded.answer, sorted]));
  const meta = loaded.answer?.meta ?? {};
  const searching = useRef(/** @type {HTMLInputElement | null} */ (null));
  // Files that people uploaded and tasks that are open are what the menu leads to.
  const filtered = !UNFILTERED.has(listedAs(table)) && [...new URLSearchParams(place.value.query).keys()].some((name) => !["page", "sort", "order", "view"].includes(name));
  useEffect(() => { if (loaded.answer) restoreScroll(); }, [loaded.answer !== null]);
  // Before the rows can be clicked.
  useLayoutEffect(() => { selected.value = new Set(); }, [place.value.query]);
  const choosing = useSignal(false);
  useKeys([
    { key: "/", label: t("list.search"), run: () => searching.current?.focus() },
    { key: "c", label: t("list.columns"), run: () => void (choosing.value = !choosing.value) },
    ...(add ? [{ key: "n n", label: t("list.new"), run: () => go(`${table.address}/new`) }] : []),
  ]);
  /** @param {string[]} names */
  const takeColumns = (names) => { columns.value = names; choose(`columns.${table.key}`, names); };
  const sheet = () => { void Promise.all([import("./filtersheet.js"), loadRest()]).then(([{ openColumnSheet }]) => openColumnSheet(table, columns.value, takeColumns), sayError); };
  const none = loaded.answer && rows.length === 0 && !loaded.loading;
  const sum = useSum(table, rows.length > 1);
  return div({ class: "card list" },
    none && !filtered || !filtered && rows.length < 2 && !hasFilters(table) ? null : div({ class: "list-bar" },
      h(Filters, { table, searching }),
      div({ class: "list-sum" }, loaded.answer ? t("list.count", { n: meta.total ?? rows.length, count: totalOf(meta, rows.length) }) : "", sum ? span({ class: "sum" }, ` · ${sum}`) : null),
      h(Button, { icon: "star", quiet: true, label: t("views.title"), class: "wide-only", onClick: () => showViews(table) }),
      exportable(table) ? h(ExportButton, { resource: table.key, filters: listFilters(), class: "wide-only" }) : null,
      h(ColumnChooser, { table, open: choosing, columns: shown, onChange: takeColumns }),
      h(Menu, { label: t("list.more"), icon: "more", quiet: true, class: "phone-only", items: [
        { label: t("views.title"), icon: "star", run: () => showViews(table) },
        { label: t("list.columns"), icon: "columns", run: sheet },
        { label: t("list.export"), icon: "download", hidden: !exportable(table), run: () => exportList(table.key, listFilters()) }] })),
    loaded.error && !loaded.answer ? h(Problem, { error: loaded.error, retry: loaded.reload }) : null,
    !loaded.answer && !loaded.error ? h(Skeleton, { rows: 10 }) : null,
    none ? nothing(table, filtered, add) : null,
    h(News, { loaded }),
    rows.length > 0 ? h(Rows, { table, rows, columns: shown, selected, dim: loaded.loading }) : null,
    h(Selection, { table, rows, selected }),
    (meta.pages ?? 1) > 1 ? h(Pages, { meta, empty: rows.length === 0 }) : null);
}

/** @param {Table} table */
const listedAs = (table) => `${table.key}?${new URLSearchParams(listFilters())}`;
const UNFILTERED = new Set(["files?origin=uploaded", "tasks?status=open"]);

/** @param {Table} table */
const exportable = (table) => tables.exports !== undefined && can(tables.exports, "create") && table.key !== "exports";

/** @param {Table} table @returns {void} */
function showViews(table) {
  void Promise.all([import("./views.js"), loadRest()]).then(([{ openViews }]) => openViews(table), sayError);
}

/** @param {string} resource @param {Record<string, string>} filters @returns {void} */
function exportList(resource, filters) {
  void Promise.all([import("./export.js"), loadRest()]).then(([{ openExport }]) => openExport(resource, filters), sayError);
}

/** Exports what a list shows; also for the lists with a screen of their own.
 * @param {{ resource: string, filters: Record<string, string>, class?: string }} properties */
export const ExportButton = ({ resource, filters, class: extra }) => (tables.exports && can(tables.exports, "create") ? h(Button, { icon: "download", quiet: true, label: t("list.export"), class: extra, onClick: () => exportList(resource, filters) }) : null);

/** The filters of the address: what is shown, without the order and the page. */
export const listFilters = () => Object.fromEntries([...new URLSearchParams(viewQuery())].filter(([name]) => !["sort", "order", "view", "per_page"].includes(name)));

/** What can be done with several records of a list at once.
 * @param {Table} table @returns {string[]} */
const actionsOf = (table) => [...(table.key === "tasks" && can(table, "patch") ? ["complete"] : []), ...(exportable(table) ? ["export"] : []), ...(can(table, "delete") ? ["delete"] : [])];

/** The amount that adds up. Subscriptions are for a month, a quarter or a year, so theirs do not.
 * @param {Table} table */
const summed = (table) => (table.key === "subscriptions" ? undefined : tasteOf(table.key).amount);

/** Won, lost and open deals are no sum together.
 * @param {Table} table */
const addsUp = (table) => table.key !== "deals" || Boolean(new URLSearchParams(place.value.query).get("status"));

/** What all records of the list add up to, asked when the page is drawn.
 * @param {Table} table @param {boolean} several */
function useSum(table, several) {
  const amount = summed(table);
  const query = viewQuery();
  // Invoices also say how much of it is still to be paid.
  const open = table.key === "invoices" ? "open_amount" : "";
  const sums = useLoad(amount && several && addsUp(table) ? `${table.path}?per_page=1&sums=${amount}${open ? `,${open}` : ""}${query ? `&${query}` : ""}` : null).answer?.meta.sums;
  if (!amount || sums?.[amount] === undefined) return "";
  return money(sums[amount]) + (open && sums[open] ? ` · ${t("list.open_sum", { amount: money(sums[open]) })}` : "");
}

/** @param {Table} table @param {boolean} filtered @param {boolean} add */
function nothing(table, filtered, add) {
  const icon = tasteOf(table.key).icon ?? "files";
  if (filtered) return h(Empty, { icon: "search", title: t("list.nothing_found"), text: t("list.nothing_found_text") }, h(Button, { href: table.address }, t("list.clear")));
  const about = table.key === "webhook_endpoints" ? h(Later, { load: () => import("./screens/webhook_example.js").then((module) => module.WebhookExample) }) : null;
  return [h(Empty, { key: "empty", icon, title: word([`empty.${table.key}`], t("list.empty", { many: tableName(table.key).toLowerCase() })), text: word([...(isTouched() ? [`empty.${table.key}.touch`] : []), `empty.${table.key}.text`], "") },
    add ? h(Button, { primary: true, icon: "plus", href: `${table.address}/new` }, word([`new.${table.key}`], t("new_one", { one: tableName(table.key, 1).toLowerCase() }))) : null,
    add && IMPORTED.includes(table.key) && tables.imports && can(tables.imports, "create") ? h(Button, { icon: "download", href: `${tables.imports.address}/new?resource=${table.key}` }, t("list.import")) : null), about];
}

/** What a new account brings from elsewhere. */
const IMPORTED = ["clients", "suppliers", "products", "invoices"];

/** A part that is loaded when it is shown.
 * @param {{ load: () => Promise<() => import("./html.js").View> }} properties */
function Later({ load }) {
  const [part, setPart] = useState(/** @type {{ draw: () => import("./html.js").View } | null} */ (null));
  useEffect(() => { void Promise.all([load(), loadRest()]).then(([draw]) => setPart({ draw })); }, []);
  return part ? h(part.draw, null) : null;
}

const narrow = ["(max-width: 90em)", "(max-width: 68.75em)"].map((query) => matchMedia(query));
const narrowness = () => narrow.filter((one) => one.matches).length;
/** How many columns do not fit this window. */
const room = signal(narrowness());
narrow.forEach((one) => one.addEventListener("change", () => { room.value = narrowness(); }));

/** The columns that fit; who chose them sees them all.
 * @param {Table} table @param {string[]} columns */
const fitting = (table, columns) => (chosen(`columns.${table.key}`, null) ? columns : columns.filter((name) => !tasteOf(table.key).roomy?.slice(0, onPhone.value ? 0 : room.value).includes(name)));

/** @param {Table} table @returns {string[]} */
function columnsOf(table) {
  const kept = chosen(`columns.${table.key}`, null);
  const known = (/** @type {string[]} */ names) => names.filter((name) => fieldOf(table, name)?.in?.includes("list"));
  if (Array.isArray(kept) && known(kept).length > 0) return known(kept);
  const tasted = known(tasteOf(table.key).columns ?? []);
  if (tasted.length > 0) return tasted;
  const shown = table.fields.filter((field) => field.in?.includes("list") && !["custom", "data", "rows", "lines"].includes(field.kind) && (!field.meta || field.kind === "moment") && field.name !== "updated_at");
  return shown.slice(0, MAX_COLUMNS).map((field) => field.name);
}

/** @param {{ table: Table, rows: Item[], columns: string[], selected: import("@preact/signals").Signal<ReadonlySet<string>>, dim: boolean }} properties */
function Rows({ table, rows, columns, selected, dim }) {
  const body = useRef(/** @type {HTMLTableSectionElement | null} */ (null));
  const at = useRef(-1);
  // The one row that Tab comes to: the last one that had the focus.
  const stop = useSignal("");
  if (!rows.some((row) => row.id === stop.peek())) stop.value = rows[0]?.id ?? "";
  const parameters = new URLSearchParams(place.value.query);
  // What is to be done is open.
  const fields = columns.filter((name) => name !== "status" || !byDeadline(table)).map((name) => fieldOf(table, name)).filter((field) => field !== undefined);
  const opens = "get" in table.verbs;
  const picks = actionsOf(table).length > 0;
  const { scrolls, wraps, tall, widths } = useMemo(() => widthsOf(table, fields, rows), [rows, namesOf(fields), room.value]);
  /** @param {number} place */
  const focus = (place) => {
    /** @type {HTMLElement | undefined} */ (body.current?.querySelectorAll("tr[id]")[Math.max(0, Math.min(rows.length - 1, place))])?.focus();
  };
  /** @param {string} id @param {boolean} [several] */
  const toggle = (id, several) => {
    const next = new Set(selected.value);
    if (next.has(id)) next.delete(id);
    else next.add(id);
    const last = rows.findIndex((row) => row.id === lastChosen.current);
    const now = rows.findIndex((row) => row.id === id);
    if (several && last >= 0) rows.slice(Math.min(last, now), Math.max(last, now) + 1).forEach((row) => next.add(row.id));
    lastChosen.current = id;
    selected.value = next;
  };
  const lastChosen = useRef("");
  const current = () => rows[at.current];
  useKeys([
    { key: "j", label: t("list.next"), run: () => focus(at.current + 1) },
    { key: "k", label: t("list.previous"), run: () => focus(at.current - 1) },
    { key: "ArrowDown", label: "", run: () => focus(at.current + 1) },
    { key: "ArrowUp", label: "", run: () => focus(at.current - 1) },
    ...(picks ? [{ key: "x", label: t("list.choose"), run: () => { const row = current(); if (row) toggle(row.id); } }] : []),
    { key: "Enter", label: t("list.open"), run: () => { const row = current(); if (row && opens) go(`${table.address}/${row.id}`); } },
  ]);
  const all = rows.length > 0 && rows.every((row) => selected.value.has(row.id));
  const drawn = useDrawn();
  // The same objects in every rendering, so that a row is drawn again only if something of its own changes.
  const latest = useRef({ toggle, fields });
  latest.current.toggle = toggle;
  if (namesOf(latest.current.fields) !== namesOf(fields)) latest.current.fields = fields;
  const actions = useMemo(() => ({ focused: (/** @type {number} */ place, /** @type {string} */ id) => { at.current = place; stop.value = id; }, toggle: (/** @type {string} */ id, /** @type {boolean} */ several) => latest.current.toggle(id, several) }), []);
  return div({ class: scrolls ? "table-box scrolls" : "table-box", role: "region", "aria-label": tableName(table.key), tabIndex: -1 },
    tableElement({ "aria-label": tableName(table.key), class: ["table", dim && "dim", wraps && "wraps", tall && "tall"].filter(Boolean).join(" ") },
      thead(null, tr(null,
        !picks ? null : th({ class: "pick" }, input({ type: "checkbox", checked: all, "aria-label": t("list.choose_all"), onChange: () => void (selected.value = new Set(all ? [] : rows.map((row) => row.id))) })),
        fields.map((field, column) => h(Heading, { key: field.name, table, field, width: widths[column], sort: parameters.get("sort") ?? "", order: parameters.get("order") ?? "desc" })))),
      tbody({ ref: body, onMouseOver: tellWhole }, rows.slice(0, drawn).flatMap((row, place) => [groupHead(table, row, rows[place - 1], fields.length - (picks ? 0 : 1)),
        h(Row, { key: row.id, table, row, place, stop, wraps, fields: latest.current.fields, opens, picks, selected, actions })]))));
}

/** @param {Field[]} fields */
const namesOf = (fields) => fields.map((field) => field.name).join();

/** How many rows are drawn: first those that fit on a screen; the others when these are painted, unless the page is to be scrolled. */
function useDrawn() {
  const [drawn, setDrawn] = useState(() => (wentBack.value ? Infinity : Math.ceil((innerHeight - ABOVE_ROWS) / LOWEST_ROW)));
  useEffect(() => {
    if (drawn === Infinity) return;
    // Effects run right after a frame, and what they change would be drawn before anything else is done.
    const timer = setTimeout(() => setDrawn(Infinity), REST_OF_ROWS_AFTER);
    return () => clearTimeout(timer);
  }, []);
  return drawn;
}

/** What a list has above its rows at least, and the height of a row in the compact view. */
const ABOVE_ROWS = 200;
const LOWEST_ROW = 32;
const REST_OF_ROWS_AFTER = 50;

/** @typedef {{ focused: (place: number, id: string) => void, toggle: (id: string, several: boolean) => void }} RowActions */

/** It reads signals, so it is drawn again only if they or its properties change.
 * @param {{ table: Table, row: Item, place: number, stop: import("@preact/signals").Signal<string>, wraps: boolean, fields: Field[], opens: boolean, picks: boolean, selected: import("@preact/signals").Signal<ReadonlySet<string>>, actions: RowActions }} properties */
function Row({ table, row, place, stop, wraps, fields, opens, picks, selected, actions }) {
  const taste = tasteOf(table.key);
  const chosen = selected.value.has(row.id);
  const phone = onPhone.value;
  const tabIndex = useComputed(() => (stop.value === row.id ? 0 : -1)).value;
  return tr({
    id: `row-${row.id}`, tabIndex, "aria-selected": chosen || undefined, class: opens ? "opens" : "",
    onFocusIn: () => actions.focused(place, row.id),
    onClick: (event) => {
      if (event.target instanceof Element && event.target.closest("a, button, input, label")) return;
      if (opens && !getSelection()?.toString()) go(`${table.address}/${row.id}`);
    },
  },
    !picks ? null : td({ class: "pick" }, input({ type: "checkbox", tabIndex, checked: chosen, "aria-label": t("list.choose_one", { name: calledIn(table, row) }), onClick: (event) => actions.toggle(row.id, event.shiftKey) })),
    fields.map((field, column) => {
      const shown = cell(table, row, fields, column, opens, tabIndex);
      return td({ key: field.name, class: cellClass(taste, field, column, fields) }, wraps && column > 0 && (room.value > 1 ? ["text", "link", "email"] : ["text"]).includes(field.kind) ? span({ class: "lines-of" }, shown) : shown);
    }),
    phone ? td({ class: "card-line" }, cardLine(table, row, fields)) : null);
}

/** @param {Item} row */
const isDraft = (row) => String(row.number ?? "").startsWith("DRAFT-");

/** The name of a record in its row; the technical number of a draft is none.
 * @param {Table} table @param {Item} row */
const calledIn = (table, row) => (isDraft(row) ? `${t("document.draft")}: ${row.title || row.client_company_name || ""}` : ownName(table.key, titleOf(table, row)));

/** The name of a group of tasks, before its first one.
 * @param {Table} table @param {Item} row @param {Item | undefined} before @param {number} columns */
function groupHead(table, row, before, columns) {
  const group = byDeadline(table) ? deadlineGroup(row) : "";
  if (!group || (before && deadlineGroup(before) === group)) return null;
  return tr({ key: group, class: "group" }, th({ scope: "rowgroup", colSpan: columns + 1 }, t(/** @type {any} */ (`tasks.${group}`))));
}

/** The second line of a row on a phone; who chose the columns sees them there.
 * @param {Table} table @param {Item} row @param {Field[]} fields */
function cardLine(table, row, fields) {
  const taste = tasteOf(table.key);
  const own = chosen(`columns.${table.key}`, null) ? fields.filter((field, column) => /card-(sub|none)/.test(cellClass(taste, field, column, fields))).map((field) => field.name) : null;
  const names = own ?? taste.card?.sub ?? (table.fields.filter((field) => field.in?.includes("list") && field.kind === "text").slice(1, 3).map((field) => field.name));
  const shown = names.map((name) => fieldOf(table, name)).filter((field) => field !== undefined && valueOf(row, field.name))
    // The status says that it is a draft; its technical number says nothing.
    .filter((field) => field?.name !== "number" || !isDraft(row));
  return shown.flatMap((field, place) => [place > 0 ? " · " : "", field?.name === "number" ? shortNumber(String(row.number)) : figure(table, row, field?.name ?? "") ?? h(Value, { key: place, table: table.key, field: /** @type {Field} */ (field), value: valueOf(row, field?.name ?? ""), plain: true })]);
}

/** @param {Table} table @param {Item} row @param {Field[]} fields @param {number} column @param {boolean} opens @param {number} tabIndex */
function cell(table, row, fields, column, opens, tabIndex) {
  const field = /** @type {Field} */ (fields[column]);
  const value = valueOf(row, field.name);
  const isName = (table.names ?? [])[0] === field.name || column === 0;
  if (column === 0 && opens) {
    // The status says already that it is a draft.
    const text = isName && field.kind === "text" ? (field.name === "company_name" ? titleOf(table, row) : shortNumber(ownName(table.key, String(value ?? "")))) : null;
    const ticks = table.key === "tasks" && row.status === "open" && can(table, "patch");
    const link = a({ key: "link", href: `${table.address}/${row.id}`, tabIndex: -1 }, field.name === "number" && isDraft(row) ? [span({ key: "none", "aria-hidden": "true" }, "–"), span({ key: "draft", class: "hidden" }, t("document.draft"))] : text || h(Value, { table: table.key, field, value, plain: true }) || "–");
    // What is done keeps its place in the line of what is not.
    if (table.key === "tasks" && row.status !== "open") return [span({ key: "tick", class: "tick done", "aria-hidden": "true" }, h(Icon, { name: "check" })), link];
    return ticks ? [button({ key: "tick", type: "button", tabIndex, class: "tick", "aria-label": `${t("action.tasks.complete")}: ${row.title}`, onClick: () => void tick(row) }, h(Icon, { name: "check" })), link] : link;
  }
  if (field.name === "deadline" && row.status === "open" && row.deadline && daysUntil(row.deadline) < 0) return span({ class: "late" }, h(Value, { table: table.key, field, value, plain: true }));
  const own = figure(table, row, field.name);
  if (own !== undefined) return own;
  // A card has no heading that says what yes and no are about.
  if (field.name === "active" && onPhone.value) return value ? null : span({ class: "pill calm" }, t("list.inactive"));
  // The name of somebody without a company is in the first column.
  if (field.name === "firstname") return contactOf(row) === titleOf(table, row) && fields[0]?.name === "company_name" ? null : contactOf(row);
  if (field.name === "due_date" && (row.payment_status === "overdue" || row.payment_status === "partial" && daysUntil(row.due_date) < 0)) return span({ class: "late" }, h(Value, { table: table.key, field, value, plain: true }));
  return h(Value, { table: table.key, field, value, plain: true });
}

/** @param {Item} row */
const contactOf = (row) => [row.firstname, row.lastname].filter(Boolean).join(" ");

/** Which place a cell has on the card of a phone.
 * @param {import("./resources.js").Taste} taste @param {Field} field @param {number} column @param {Field[]} fields */
function cellClass(taste, field, column, fields) {
  // Without the column of its title, a card is called by its first one.
  const card = taste.card && fields.some((one) => one.name === taste.card?.title) ? taste.card : taste.card && { ...taste.card, title: fields[0]?.name };
  const spot = !card ? (column === 0 ? "card-title" : "card-none")
    : card.title === field.name ? "card-title" : card.end === field.name ? "card-end" : card.status === field.name ? "card-status" : card.sub?.includes(field.name) ? "card-sub" : "card-none";
  return [spot, isNumeric(field) ? "number" : "", field.kind === "day" || field.kind === "moment" ? "when" : "", column === 0 ? "first" : ""].filter(Boolean).join(" ");
}

/** Text that is cut is told whole under the pointer.
 * @param {MouseEvent} event */
function tellWhole(event) {
  const cell = event.target instanceof Element ? event.target.closest("td") : null;
  const text = cell?.querySelector(".lines-of") ?? cell;
  if (cell instanceof HTMLElement && text && !cell.title && (text.scrollWidth > text.clientWidth || text.scrollHeight > text.clientHeight)) cell.title = cell.textContent ?? "";
}

/** @param {Table} table @param {Field} field @returns {string} */
const headingOf = (table, field) => (field.name !== "firstname" && field.name !== "company_name" || !table.names?.includes("lastname") ? fieldName(table.key, field.name) : t(field.name === "firstname" ? "field.contact" : "field.name"));

/** @param {{ table: Table, field: Field, width: string | undefined, sort: string, order: string }} properties */
function Heading({ table, field, width, sort, order }) {
  const name = headingOf(table, field);
  const numeric = isNumeric(field) ? "number" : "";
  const style = { width };
  if (!field.sort && !table.sorts?.includes(field.name)) return th({ class: numeric, style, scope: "col" }, name);
  const sorted = sort === field.name;
  const first = ["text", "choice", "link", "email"].includes(field.kind) ? "asc" : "desc";
  const next = !sorted ? first : order === first ? (first === "asc" ? "desc" : "asc") : "";
  return th({ class: numeric, style, scope: "col", "aria-sort": sorted ? (order === "asc" ? "ascending" : "descending") : undefined },
    button({ type: "button", class: "sort", onClick: () => setQuery({ sort: next ? field.name : "", order: next, page: "" }) }, name, sorted ? h(Icon, { name: order === "asc" ? "up" : "down" }) : null));
}

/** The widths of the columns. What is short has the room that the longest of all loaded rows takes; other text shares the
 * rest, by what it would take; if that is not enough, it has more lines on laptops and tablets. On tablets linked names have too, so rows are as high as most of them will be; linked names count as long as they usually are, so that nothing moves when they come.
 * @param {Table} table @param {Field[]} fields @param {Item[]} rows */
function widthsOf(table, fields, rows) {
  const columns = fields.map((field, column) => {
    const takes = rows.map((row) => roomFor(textOf(table, row, field, column), column === 0)).sort((one, other) => one - other);
    const heading = Math.max(...headingOf(table, field).split(" ").map((part) => roomFor(part, true) * SMALL));
    const most = (takes.at(-1) ?? 0) * (isStatus(table.key, field.name) ? SMALL : 1);
    const rigid = most === 0 || !field.refers && (most <= SHORT || isNumeric(field) || /day|moment/.test(field.kind));
    // One long name does not take the room of the others, and names come before addresses.
    const usual = Math.min(field.kind === "email" ? SHORT : LONG, takes[Math.ceil((takes.length - 1) * 0.9)] ?? 0);
    return { rigid, room: Math.ceil(4 * ((room.value > 1 ? TIGHT : PADDING) + Math.max(heading, rigid ? most : usual))) / 4 };
  });
  const first = columns[0];
  if (first && columns.every(({ rigid }) => rigid)) first.rigid = false;
  let [shared, fixed, least] = [0, 0, 0];
  for (const { rigid, room } of columns) {
    shared += rigid ? 0 : room;
    fixed += rigid ? room : 0;
    least += rigid ? room : LEAST;
  }
  const all = innerWidth / 16 - AROUND;
  const scrolls = fields.length > 8 || least > all;
  const wraps = room.value > 0 && !scrolls;
  return { scrolls, wraps, tall: wraps && room.value > 1 && fixed + shared > all, widths: columns.map(({ rigid, room }) => (rigid || scrolls ? `${room}rem` : `${100 * room / shared}%`)) };
}

/** In rem: what text takes to be long or short, what is left of a text that is cut, and what a cell and a table with its menu have around them. */
const SHORT = 8.5;
const LONG = 15;
const LEAST = 6;
const PADDING = 1.375;
const TIGHT = 1.25;
const AROUND = 19;
/** The letters of headings and statuses, beside those of other cells. */
const SMALL = 12 / 14;
const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
/** @param {string} text @param {boolean} [bold] */
function roomFor(text, bold) {
  pen.font = `${bold ? 600 : 400} 14px system-ui, sans-serif`;
  return pen.measureText(text).width / 16;
}

/** About what a cell shows.
 * @param {Table} table @param {Item} row @param {Field} field @param {number} column @returns {string} */
function textOf(table, row, field, column) {
  const value = valueOf(row, field.name);
  // These come after the rows.
  if (field.name === "budget_used") return money(1e6);
  if (field.name === "open_amount") return money(Math.max(1e4, row.total_incl_vat ?? value ?? 0));
  if (value === null || value === undefined || value === "") return "";
  if (field.refers) return field.refers === "clients" ? "Installatiebedrijf Van Dijk" : "Offerte verzonden";
  if (field.kind === "moment") return "59 minuten geleden";
  if (field.name === "firstname") return contactOf(row) === titleOf(table, row) ? "" : contactOf(row);
  if (column === 0 && field.kind === "text") return field.name === "company_name" ? titleOf(table, row) : ownName(table.key, isDraft(row) ? "–" : String(value));
  if (table.key === "subscriptions" && field.name === "total_incl_vat") return `${money(value)} ${word([`per.${row.term}`], "")}`;
  const shown = Value({ table: table.key, field, value, plain: true });
  return typeof shown === "string" ? shown : field.kind === "boolean" ? t("no") : `${choiceName(table.key, field.name, String(value))} xxx`;
}

/** What is chosen: how many, and what they add up to.
 * @param {{ table: Table, rows: Item[], selected: import("@preact/signals").Signal<ReadonlySet<string>> }} properties */
function Selection({ table, rows, selected }) {
  const amount = summed(table);
  const ids = selected.value;
  if (ids.size === 0) return null;
  const sum = amount ? rows.filter((row) => ids.has(row.id)).reduce((total, row) => total + cents(valueOf(row, amount)), 0n) : null;
  return div({ class: "selection", role: "status" }, span(null, t("list.chosen", { n: ids.size })), sum !== null ? span({ class: "sum" }, moneyOfCents(sum)) : null,
    actionsOf(table).filter((action) => action !== "delete" || !FINAL.has(table.key) || rows.some((row) => ids.has(row.id) && row.payment_status === "draft")).map((action) => h(Button, { key: action, small: true, icon: ACTIONS[action], onClick: () => run(action) }, word([`several.${action}`], action))),
    h(Button, { small: true, quiet: true, onClick: () => void (selected.value = new Set()) }, t("list.unchoose")));
  /** @param {string} action */
  function run(action) {
    const some = rows.filter((row) => ids.has(row.id));
    if (action === "export") exportList(table.key, { id: [...ids].join() });
    else void Promise.all([import("./several.js"), loadRest()]).then(([{ openSeveral }]) => openSeveral(table, action, some.map((row) => ({ id: row.id, name: calledIn(table, row) })), () => { selected.value = new Set(); }), sayError);
  }
}

/** Of these, drafts alone can be deleted. */
const FINAL = new Set(["invoices", "quotes", "workorders"]);
/** @type {Record<string, string>} */
const ACTIONS = { complete: "check", export: "download", delete: "trash" };

/** @param {{ meta: Record<string, any>, empty: boolean }} properties */
function Pages({ meta, empty }) {
  const page = Number(meta.page);
  const from = (page - 1) * meta.per_page + 1;
  // The server counts the matches of a search up to a limit. The last page says how many there are.
  const more = meta.total_is_minimum && !empty;
  const to = more ? page * meta.per_page : Math.min(meta.total, page * meta.per_page);
  // A button that has no use keeps the focus, so that the keyboard stays where it is.
  /** @param {number} number @param {string} label @param {string} icon @param {boolean} useless */
  const step = (number, label, icon, useless) => button({ type: "button", class: "button small quiet square", "aria-label": label, title: label, "aria-disabled": useless || undefined, onClick: () => { if (useless) return; setQuery({ page: number > 1 ? String(number) : "" }); scrollTo(0, 0); } }, h(Icon, { name: icon }));
  return nav({ class: "pages", "aria-label": t("list.pages") }, span({ class: "soft" }, t("list.range", { from: count(from), to: count(to), total: totalOf(meta, to) })),
    step(1, t("list.first_page"), "first", page <= 1), step(page - 1, t("list.previous_page"), "left", page <= 1),
    step(page + 1, t("list.next_page"), "right", !more && page >= meta.pages), step(meta.pages, t("list.last_page"), "last", more || page >= meta.pages));
}

/** How many records there are, such as 10,000+: the server counts those of a search up to a limit, and says so.
 * @param {Record<string, any>} meta @param {number} seen */
const totalOf = (meta, seen) => (meta.total_is_minimum ? `${count(Math.max(meta.total, seen))}+` : count(meta.total ?? seen));
