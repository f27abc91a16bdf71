// Search, filters as chips, and the column chooser of a list.
import { useEffect, useRef, useState } from "preact/hooks";
import { nearDay } from "./format.js";
import { button, div, h, input, label, span } from "./html.js";
import { Button, Icon, Menu, sayError, useOutside, usePopover } from "./parts.js";
import { tasteOf } from "./resources.js";
import { place, setQuery } from "./router.js";
import { choiceName, fieldName, loadRest, t } from "./words.js";
import { PlainName } from "./value.js";

/** @typedef {import("./schema.js").Table} Table */
/** @typedef {import("./schema.js").Field} Field */
const WAIT = 150;

/** @param {{ table: Table, searching: { current: HTMLInputElement | null } }} properties */
export function Filters({ table, searching }) {
  const parameters = new URLSearchParams(place.value.query);
  const [adding, setAdding] = useState("");
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useOutside(box, adding !== "", () => setAdding(""));
  const tabs = (tasteOf(table.key).tabs ?? []).map(([, query]) => query).filter(Boolean);
  const tabbed = new Set(tabs.flatMap((query) => [...new URLSearchParams(query).keys()]));
  // A tab is about its first filter; the others can be chosen too.
  const chosenByTab = new Set(tabs.map((query) => new URLSearchParams(query).keys().next().value));
  const fields = filtersOf(table);
  // What no tab says is said by a chip.
  const untold = !tabs.some((query) => isOf(query, parameters));
  const active = fields.filter((field) => isActive(field, parameters) && (untold || !(field.filter && tabbed.has(field.filter))));
  const rest = fields.filter((field) => !isActive(field, parameters) && !(field.filter && chosenByTab.has(field.filter)));
  const open = fields.find((field) => field.name === adding);
  // The focus goes back to the chip, or to the menu that the filter came from.
  const close = () => {
    setAdding("");
    requestAnimationFrame(() => /** @type {HTMLElement | null | undefined} */ (document.getElementById(`chip-${adding}`) ?? box.current?.querySelector(".menu > button"))?.focus());
  };
  const sheet = () => void Promise.all([import("./filtersheet.js"), loadRest()]).then(([{ openFilterSheet }]) => openFilterSheet(table, [...active, ...rest]), sayError);
  return div({ class: "filters", ref: box, onKeyDown: (event) => { if (event.key === "Escape" && adding) { event.stopPropagation(); close(); } } },
    table.search ? h(SearchBox, { box: searching, now: parameters.get("search") ?? "" }) : null,
    active.map((field) => h(Chip, { key: field.name, table, field, parameters, onOpen: () => setAdding(adding === field.name ? "" : field.name) })),
    rest.length > 0 ? h(Menu, { label: t("list.filter"), icon: "filter", quiet: true, showLabel: true, align: "left", class: "wide-only", items: rest.map((field) => ({ label: fieldName(table.key, field.name), run: () => setAdding(field.name) })) }) : null,
    active.length + rest.length > 0 ? h(Button, { icon: "filter", class: "phone-only", onClick: sheet }, active.length > 0 ? t("list.n_filters", { n: active.length }) : t("list.filters")) : null,
    open ? h(Box, { table, field: open, parameters, close }) : null);
}

/** @param {Table} table @param {Field} field */
const fits = (table, field) => table.key === "invoices" || !OF_INVOICES.includes(field.name);

/** What only invoices have, of the fields that all documents share. */
const OF_INVOICES = ["collected", "is_credit", "owed", "outstanding", "late"];

/** @param {Table} table */
const filtersOf = (table) => table.fields.filter((field) => fits(table, field) && ((field.filter && !(field.kind === "text" && table.search) && field.name !== "id") || field.range?.length));

/** Whether a list can be searched or filtered.
 * @param {Table} table */
export const hasFilters = (table) => Boolean(table.search) || filtersOf(table).length > 0;

/** The controls of a filter are loaded when one is opened.
 * @param {{ table: Table, field: Field, parameters: URLSearchParams, close: () => void }} properties */
function Box(properties) {
  const [shown, setShown] = useState(/** @type {typeof import("./filterbox.js") | null} */ (null));
  useEffect(() => { void import("./filterbox.js").then(setShown); }, []);
  return shown ? h(shown.FilterBox, properties) : null;
}

/** Whether an address has the filters of a tab; the order does not matter.
 * @param {string} query @param {URLSearchParams} now */
export const isOf = (query, now) => [...new URLSearchParams(query)].every(([name, value]) => ["sort", "order"].includes(name) || (value.startsWith("{") ? now.has(name) : now.get(name) === value));

/** @param {Field} field @param {URLSearchParams} parameters */
const isActive = (field, parameters) => Boolean(field.filter && parameters.get(field.filter)) || Boolean(field.range?.some((name) => parameters.get(name)));

/** @param {{ box: { current: HTMLInputElement | null }, now: string }} properties */
export function SearchBox({ box, now }) {
  const [typed, setTyped] = useState(now);
  const timer = useRef(0);
  useEffect(() => { if (document.activeElement !== box.current) setTyped(now); }, [now]);
  return div({ class: "search" }, h(Icon, { name: "search" }), input({
    ref: box, type: "search", value: typed, placeholder: t("list.search"), "aria-label": t("list.search"),
    onInput: (event) => {
      const text = event.currentTarget.value;
      setTyped(text);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => setQuery({ search: text.trim(), page: "" }), WAIT);
    },
    onKeyDown: (event) => {
      if (event.key !== "Escape") return;
      event.currentTarget.blur();
      // To the row that the keyboard was at; other rows are coming if there was a search.
      /** @type {HTMLElement | null} */ (document.querySelector(typed ? ".table-box" : ".table-box tr[tabindex='0']"))?.focus();
      if (typed) { setTyped(""); setQuery({ search: "", page: "" }); }
    },
  }));
}

/** @param {{ table: Table, field: Field, parameters: URLSearchParams, onOpen: () => void }} properties */
function Chip({ table, field, parameters, onOpen }) {
  const names = field.range?.length ? field.range : [field.filter ?? ""];
  const value = field.filter ? (parameters.get(field.filter) ?? "") : "";
  const [from, to] = (field.range ?? []).map((name) => nearDay(parameters.get(name)));
  const shown = field.range?.length && !value ? [from, to].map((one) => one || "…").join(" – ")
    : field.refers ? h(PlainName, { table: field.refers, id: value })
    : field.kind === "boolean" ? (/^(1|true)$/.test(value) ? t("yes") : t("no"))
    : field.kind === "choice" ? value.split(",").map((one) => choiceName(table.key, field.name, one)).join(", ") : value;
  return span({ class: "chip wide-only" }, button({ type: "button", id: `chip-${field.name}`, onClick: onOpen }, span({ class: "soft" }, `${fieldName(table.key, field.name)}: `), shown),
    button({ type: "button", class: "chip-close", "aria-label": `${t("list.remove_filter")}: ${fieldName(table.key, field.name)}`, onClick: () => setQuery(Object.fromEntries([...names.map((name) => [name, ""]), ["page", ""]])) }, h(Icon, { name: "close" })));
}

/** What a list can have as a column.
 * @param {Table} table */
export const columnFields = (table) => table.fields.filter((field) => fits(table, field) && field.in?.includes("list") && !["custom", "data", "rows", "lines"].includes(field.kind));

/** @param {{ table: Table, open: import("@preact/signals").Signal<boolean>, columns: string[], onChange: (names: string[]) => void }} properties */
export function ColumnChooser({ table, open, columns, onChange }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useOutside(box, open.value, () => { open.value = false; });
  usePopover(box, ".menu-list", open.value, "right");
  const boxes = () => [.../** @type {NodeListOf<HTMLElement>} */ (box.current?.querySelectorAll("input:enabled") ?? [])];
  const from = useRef(/** @type {Element | null} */ (null));
  useEffect(() => {
    if (!open.value) return;
    from.current = document.activeElement;
    boxes()[0]?.focus();
  }, [open.value]);
  // The keys of the list do not work here.
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (!open.value || event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      const all = boxes();
      all.at((all.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + step) % all.length)?.focus();
    } else if (event.key === "Escape" || event.key === "c") {
      open.value = false;
      // To the row that it was opened from, or to the button.
      /** @type {HTMLElement | null | undefined} */ (from.current?.matches("tr") ? from.current : box.current?.querySelector("button"))?.focus();
    } else return;
    event.preventDefault();
  };
  const all = columnFields(table);
  /** @param {string} name */
  const toggle = (name) => onChange(columns.includes(name) ? columns.filter((one) => one !== name) : all.map((field) => field.name).filter((one) => one === name || columns.includes(one)));
  return div({ class: "menu wide-only", ref: box, onKeyDown, onFocusOut: (event) => { if (event.relatedTarget instanceof Node && !box.current?.contains(event.relatedTarget)) open.value = false; } },
    h(Button, { icon: "columns", quiet: true, label: t("list.columns"), open: open.value, onClick: () => { open.value = !open.value; } }),
    open.value ? div({ class: "menu-list columns-list", popover: "manual", role: "group", "aria-label": t("list.columns") }, all.map((field) => label({ key: field.name },
      input({ type: "checkbox", checked: columns.includes(field.name), disabled: columns.length === 1 && columns[0] === field.name, onChange: () => toggle(field.name) }), fieldName(table.key, field.name)))) : null);
}
