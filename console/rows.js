// The rows of a document or a subscription while they are edited: a signal per field, so that a keystroke redraws one row
// and the sums.
import { computed, signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { newKey } from "./api.js";
import { useSearch } from "./combobox.js";
import { NumberBox, lengthOf } from "./field.js";
import { moneyOfCents, percent, price } from "./format.js";
import { button, div, h, input, li, option, select, span, textarea, ul } from "./html.js";
import { lineTotal, partOfLine, totalsOf } from "./money.js";
import { Icon, useOutside } from "./parts.js";
import { t } from "./words.js";

/** @typedef {import("./api.js").Item} Item */
/** @template T @typedef {import("@preact/signals").Signal<T>} Signal */
/** @typedef {{ key: string, name: Signal<string>, description: Signal<string>, quantity: Signal<string>, unit: Signal<string>, price: Signal<string>,
 *   vat: Signal<string>, product: Signal<string>, error: Signal<string> }} EditedRow `vat` is the code of a tax rate, or a percentage. */
/** @typedef {{ code: string, label: string, rate: string, category: string }} Rate */

/** @type {Record<string, string>} The categories of EN 16931. */
const CATEGORIES = { standard: "S", reduced: "S", zero: "Z", exempt: "E", reverse_charge: "AE", intra_community: "K", export: "G" };

/** @param {Item[]} rates @returns {Rate[]} */
export const salesRates = (rates) => rates.filter((rate) => rate.context === "sales").map((rate) => ({ code: rate.code, label: rate.label, rate: String(rate.amount), category: CATEGORIES[rate.type] ?? "S" }));

/** @param {Item} [row] @param {string} [vat] @returns {EditedRow} */
export const editedRow = (row = {}, vat = "") => ({
  key: newKey(), name: signal(row.name ?? row.title ?? ""), description: signal(row.description ?? ""), quantity: signal(row.quantity === undefined ? "1" : String(row.quantity)),
  unit: signal(row.unit ?? ""), price: signal(row.unit_price === undefined ? "" : String(row.unit_price)), vat: signal(row.vat_code || (row.vat_rate !== undefined ? String(row.vat_rate) : vat)),
  product: signal(row.product_id ?? ""), error: signal(""),
});

/** @param {EditedRow} row */
export const isBlank = (row) => row.name.value === "" && row.price.value === "" && row.description.value === "";

/** The body of a row. `name` is what the list calls the name of a row.
 * @param {EditedRow} row @param {"name" | "title"} name @param {Rate[]} rates */
export function rowBody(row, name, rates) {
  const known = rates.some((rate) => rate.code === row.vat.value);
  return { [name]: row.name.value, description: row.description.value, quantity: row.quantity.value || "1", unit: row.unit.value, unit_price: row.price.value || "0",
    ...(row.vat.value ? (known ? { vat_code: row.vat.value } : { vat_rate: row.vat.value }) : {}), ...(row.product.value ? { product_id: row.product.value } : {}) };
}

/** Whether a field has text that is no number or no day; the first one gets the focus. */
export function unreadable() {
  const box = /** @type {HTMLElement | null} */ (document.querySelector(".editor :is(.number, .day):has(> .wrong, > .either) > input"));
  box?.focus();
  return box !== null;
}

/** The totals of edited rows, kept up to date. What a row adds is worked out again only if that row changes.
 * @param {Signal<EditedRow[]>} rows @param {Rate[]} rates */
export function liveTotals(rows, rates) {
  /** @type {WeakMap<EditedRow, import("@preact/signals").ReadonlySignal<import("./money.js").Part | null>>} */
  const parts = new WeakMap();
  /** @param {EditedRow} row */
  const partOf = (row) => {
    const known = parts.get(row) ?? computed(() => {
      if (isBlank(row)) return null;
      const rate = rates.find((one) => one.code === row.vat.value);
      return partOfLine({ quantity: row.quantity.value || "1", unitPrice: row.price.value, rate: rate?.rate ?? (row.vat.value || "0"), category: rate?.category ?? (Number(row.vat.value) ? "S" : "Z") });
    });
    parts.set(row, known);
    return known.value;
  };
  return computed(() => totalsOf(rows.value.map(partOf).filter((part) => part !== null)));
}

/** @param {{ rows: Signal<EditedRow[]>, rates: Rate[], onChange: () => void, disabled?: boolean }} properties */
export function RowsEditor({ rows, rates, onChange, disabled }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const standard = rates[0]?.code ?? "";
  // One blank row, always.
  useEffect(() => {
    const last = rows.value[rows.value.length - 1];
    if (!last || !isBlank(last)) rows.value = [...rows.value, editedRow({}, last?.vat.value || standard)];
  });
  const changed = () => {
    const last = rows.value[rows.value.length - 1];
    if (last && !isBlank(last)) rows.value = [...rows.value, editedRow({}, last.vat.value || standard)];
    onChange();
  };
  /** @param {number} place @param {string} [column] */
  const focus = (place, column = "name") => requestAnimationFrame(() => /** @type {HTMLElement | null | undefined} */ (box.current?.querySelectorAll(`.cell-${column} :is(input, select)`)[place])?.focus());
  /** @param {EditedRow} row @param {number} step */
  const move = (row, step) => {
    const all = [...rows.value];
    const at = all.indexOf(row);
    const to = at + step;
    if (to < 0 || to >= all.length - 1 || at === all.length - 1) return;
    all.splice(to, 0, ...all.splice(at, 1));
    rows.value = all;
    onChange();
  };
  /** @param {EditedRow} row */
  const removeRow = (row) => {
    const at = rows.value.indexOf(row);
    rows.value = rows.value.filter((one) => one !== row);
    onChange();
    focus(Math.max(0, at - 1));
  };
  /** @param {KeyboardEvent} event @param {EditedRow} row @param {number} place */
  const onKeyDown = (event, row, place) => {
    const inList = event.target instanceof HTMLSelectElement;
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown") && !inList) move(row, event.key === "ArrowUp" ? -1 : 1);
    else if (event.ctrlKey && event.shiftKey && event.key === "Backspace") removeRow(row);
    else if (event.key === "Enter" && !event.ctrlKey && !event.defaultPrevented && !(event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLButtonElement)) focus(place + 1);
    else return;
    event.preventDefault();
  };
  // The same object in every rendering, so that a row is drawn again only if something of its own changes.
  const latest = useRef(/** @type {RowActions | null} */ (null));
  latest.current = { changed, remove: removeRow, drop: (from, to) => { const row = rows.value[from]; if (row) move(row, to - from); }, keyDown: onKeyDown };
  const actions = useMemo(() => /** @type {RowActions} */ ({ changed: () => latest.current?.changed(), remove: (row) => latest.current?.remove(row), drop: (from, to) => latest.current?.drop(from, to), keyDown: (event, row, place) => latest.current?.keyDown(event, row, place) }), []);
  return div({ class: "rows", ref: box, role: "table", "aria-label": t("rows.title") },
    div({ class: "rows-head", role: "row" }, ["rows.move", "rows.description", "rows.quantity", "field.unit", "field.price", "field.vat_rate", "field.amount", "rows.remove"].map((name, place) => span({ key: name, role: "columnheader" }, place % 7 === 0 ? span({ class: "hidden" }, t(/** @type {any} */ (name))) : t(/** @type {any} */ (name))))),
    rows.value.map((row, place) => h(RowLine, { key: row.key, row, place, rates, actions, disabled, last: place === rows.value.length - 1 })));
}

/** @typedef {{ changed: () => void, remove: (row: EditedRow) => void, drop: (from: number, to: number) => void, keyDown: (event: KeyboardEvent, row: EditedRow, place: number) => void }} RowActions */

/** @param {{ row: EditedRow, place: number, rates: Rate[], actions: RowActions, disabled?: boolean, last: boolean }} properties */
function RowLine({ row, place, rates, actions, disabled, last }) {
  const [detailed, setDetailed] = useState(row.description.value !== "");
  const number = t("rows.row", { n: place + 1 });
  /** @param {Signal<string>} field */
  const set = (field) => (/** @type {string} */ value) => { field.value = value; row.error.value = ""; actions.changed(); };
  const known = rates.some((rate) => rate.code === row.vat.value);
  const total = last && isBlank(row) ? "" : moneyOfCents(lineTotal(row.quantity.value || "1", row.price.value));
  return div({ class: last ? "row-line blank" : "row-line", role: "row", onKeyDown: (event) => actions.keyDown(event, row, place),
    onDragOver: (event) => event.preventDefault(), onDrop: (event) => { event.preventDefault(); actions.drop(Number(event.dataTransfer?.getData("text/plain")), place); } },
    span({ class: "handle", role: "cell", draggable: !last, title: t("rows.move"), onDragStart: (event) => event.dataTransfer?.setData("text/plain", String(place)) }, last ? null : h(Icon, { name: "drag" })),
    div({ class: "cell-name", role: "cell" }, h(ProductBox, { row, changed: actions.changed, rates, disabled, label: `${number}, ${t("rows.description")}`, onDetails: () => setDetailed(true), detailed }),
      detailed ? textarea({ rows: 2, value: row.description.value, placeholder: t("rows.details"), "aria-label": `${number}, ${t("rows.details")}`, onInput: (event) => set(row.description)(event.currentTarget.value) }) : null,
      row.error.value ? span({ class: "wrong" }, row.error.value) : null),
    div({ class: "cell-quantity", role: "cell" }, h(NumberBox, { id: `${row.key}-quantity`, value: last && isBlank(row) ? "" : row.quantity.value, onChange: set(row.quantity), label: `${number}, ${t("rows.quantity")}`, disabled })),
    div({ class: "cell-unit", role: "cell" }, input({ type: "text", value: row.unit.value, maxLength: 64, placeholder: last ? "" : t("field.unit").toLowerCase(), "aria-label": `${number}, ${t("field.unit")}`, disabled, onInput: (event) => set(row.unit)(event.currentTarget.value) })),
    div({ class: "cell-price", role: "cell" }, h(NumberBox, { id: `${row.key}-price`, value: row.price.value, decimals: 2, onChange: set(row.price), label: `${number}, ${t("field.price")}`, disabled })),
    div({ class: "cell-vat select", role: "cell" }, select({ value: row.vat.value, "aria-label": `${number}, ${t("field.vat_rate")}`, disabled, onChange: (event) => set(row.vat)(event.currentTarget.value) },
      !known && row.vat.value ? option({ value: row.vat.value }, rates.find((rate) => Number(rate.rate) === Number(row.vat.value))?.label ?? percent(row.vat.value)) : null, rates.map((rate) => option({ key: rate.code, value: rate.code }, rate.label))), h(Icon, { name: "down", class: "caret" })),
    span({ class: `cell-total ${lengthOf(total)}`, role: "cell" }, total),
    span({ class: "cell-remove", role: "cell" }, last || disabled ? null : button({ type: "button", class: "button quiet square small", "aria-label": `${number}: ${t("rows.remove")}`, title: t("rows.remove"), tabIndex: -1, onClick: () => actions.remove(row) }, h(Icon, { name: "close" }))));
}

/** The name of a row: free text, or a product that fills in the rest.
 * @param {{ row: EditedRow, changed: () => void, rates: Rate[], disabled?: boolean, label: string, onDetails: () => void, detailed: boolean }} properties */
function ProductBox({ row, changed, rates, disabled, label, onDetails, detailed }) {
  const [typing, setTyping] = useState(false);
  const { found, open, setOpen, active, setActive } = useSearch("products", row.name.value, "active=1");
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useOutside(box, open, () => setOpen(false));
  const shown = open && typing ? found : [];
  /** @param {Item} product */
  const pick = (product) => {
    row.name.value = product.name;
    row.product.value = product.id;
    row.unit.value = product.unit || row.unit.value;
    row.price.value = String(product.price ?? "");
    const rate = rates.find((one) => one.rate === String(product.vat_rate));
    if (rate) row.vat.value = rate.code;
    setOpen(false);
    setTyping(false);
    changed();
    requestAnimationFrame(() => document.getElementById(`${row.key}-quantity`)?.focus());
  };
  return div({ class: "combobox product", ref: box },
    input({
      type: "text", role: "combobox", autocomplete: "off", disabled, maxLength: 255, value: row.name.value, placeholder: t("rows.placeholder"), "aria-label": label, "aria-expanded": shown.length > 0, "aria-controls": `${row.key}-products`,
      "aria-activedescendant": shown[active] ? `${row.key}-${active}` : undefined, "aria-invalid": row.error.value !== "" || undefined,
      onInput: (event) => { row.name.value = event.currentTarget.value; row.error.value = ""; setTyping(true); setOpen(true); setActive(-1); changed(); },
      onKeyDown: (event) => {
        if (shown.length === 0 || event.altKey) return;
        if (event.key === "ArrowDown" || event.key === "ArrowUp") setActive((active + (event.key === "ArrowDown" ? 1 : -1) + shown.length) % shown.length);
        else if (event.key === "Enter" && shown[active]) pick(shown[active]);
        else if (event.key === "Escape") { setOpen(false); event.stopPropagation(); }
        else return;
        event.preventDefault();
      },
      onBlur: () => { setOpen(false); setTyping(false); },
    }),
    row.name.value && !detailed && !disabled ? button({ type: "button", class: "clear", tabIndex: -1, title: t("rows.add_details"), "aria-label": t("rows.add_details"), onClick: onDetails }, h(Icon, { name: "note" })) : null,
    shown.length > 0 ? ul({ class: "options", role: "listbox", id: `${row.key}-products`, "aria-label": t("table.products") }, shown.map((product, place) =>
      li({ key: product.id, id: `${row.key}-${place}`, role: "option", "aria-selected": place === active, onPointerDown: (event) => { event.preventDefault(); pick(product); } }, span(null, product.name), span({ class: "soft" }, product.code), span({ class: "soft" }, price(product.price))))) : null);
}

/** Subtotal, VAT per rate, total.
 * @param {{ totals: import("@preact/signals").ReadonlySignal<import("./money.js").Totals>, rates: Rate[] }} properties */
export function Sums({ totals: live, rates }) {
  const { groups, net, gross } = live.value;
  return div({ class: "sums", role: "status", "aria-label": t("rows.totals") },
    div(null, span(null, t("field.subtotal")), span(null, moneyOfCents(net))),
    groups.map((group) => div({ key: group.rate + group.category }, span(null, rates.find((rate) => rate.category === group.category && rate.rate === group.rate)?.label ?? `${t("field.vat_rate")} ${percent(group.rate)}`), span(null, moneyOfCents(group.tax)))),
    div({ class: "grand" }, span(null, t("field.total_incl_vat")), span(null, moneyOfCents(gross))));
}
