// All filters of a list and its order in one sheet, and its columns in another, for phones.
import { useState } from "preact/hooks";
import { LinkBox } from "./combobox.js";
import { Dialog, openDialog } from "./dialog.js";
import { ChoiceBox, DayBox, TextBox } from "./field.js";
import { columnFields } from "./filters.js";
import { div, fieldset, h, input, label, legend } from "./html.js";
import { Button } from "./parts.js";
import { place, setQuery } from "./router.js";
import { choiceName, fieldName, t } from "./words.js";

/** @typedef {import("./schema.js").Table} Table */
/** @typedef {import("./schema.js").Field} Field */

/** @param {Table} table @param {Field[]} fields */
export const openFilterSheet = (table, fields) => openDialog(({ close }) => h(FilterSheet, { table, fields, close }));

/** @param {{ table: Table, fields: Field[], close: () => void }} properties */
function FilterSheet({ table, fields, close }) {
  const names = fields.flatMap((field) => [field.filter ?? "", ...(field.range ?? [])]).filter(Boolean);
  const now = new URLSearchParams(place.value.query);
  const [values, setValues] = useState(Object.fromEntries([...names, "sort", "order"].map((name) => [name, now.get(name) ?? ""])));
  /** @param {Record<string, string>} changes */
  const set = (changes) => setValues((before) => ({ ...before, ...changes }));
  const sorts = (table.sorts ?? []).filter((name) => name !== "id").map((name) => /** @type {[string, string]} */ ([name, fieldName(table.key, name)]));
  const clear = () => { close(); setQuery(Object.fromEntries([...names, "page"].map((name) => [name, ""]))); };
  const run = async () => setQuery({ ...values, order: values.sort ? values.order || "desc" : "", page: "" });
  return h(Dialog, { title: t("list.filters"), action: t("list.apply"), class: "sheet-dialog", calm: true, close, run, other: h(Button, { disabled: names.every((name) => !values[name]), onClick: clear }, t("list.clear_filters")) },
    fields.map((field) => h(Filter, { key: field.name, table, field, values, set })),
    sorts.length > 0 ? div({ class: "sheet-pair" },
      div({ class: "field" }, label({ for: "sheet-sort" }, t("list.sort")), h(ChoiceBox, { id: "sheet-sort", value: values.sort, options: [["", t("list.standard")], ...sorts], onChange: (sort) => set({ sort }) })),
      div({ class: "field" }, label({ for: "sheet-order" }, t("list.order")), h(ChoiceBox, { id: "sheet-order", value: values.order || "desc", disabled: !values.sort, options: [["asc", t("list.ascending")], ["desc", t("list.descending")]], onChange: (order) => set({ order }) }))) : null);
}

/** @param {{ table: Table, field: Field, values: Record<string, string>, set: (changes: Record<string, string>) => void }} properties */
function Filter({ table, field, values, set }) {
  const name = field.filter ?? "";
  const id = `sheet-${field.name}`;
  const title = fieldName(table.key, field.name);
  const value = values[name] ?? "";
  if (field.range?.length) {
    return fieldset({ class: "field choice" }, legend(null, title), div({ class: "sheet-pair" }, field.range.map((parameter, at) => div({ key: parameter, class: "field" },
      label({ for: `${id}-${at}` }, at === 0 ? t("list.from") : t("list.to")), h(DayBox, { id: `${id}-${at}`, value: values[parameter] ?? "", onChange: (day) => set({ [parameter]: day }) })))));
  }
  /** @type {[string, string][]} */
  const options = field.kind === "boolean" ? [["1", t("yes")], ["0", t("no")]] : (field.choices ?? []).map((choice) => [choice, choiceName(table.key, field.name, choice)]);
  const onChange = (/** @type {string} */ chosen) => set({ [name]: chosen });
  return div({ class: "field" }, label({ for: id }, title), field.refers ? h(LinkBox, { id, table: field.refers, value, onChange })
    : options.length > 0 ? h(ChoiceBox, { id, value: field.kind === "boolean" && value ? (/^(1|true)$/.test(value) ? "1" : "0") : value, options: [["", t("tab.all")], ...options], onChange })
    : h(TextBox, { id, value, onChange: (typed) => onChange(typed.trim()) }));
}

/** @param {Table} table @param {string[]} columns @param {(names: string[]) => void} onChange */
export const openColumnSheet = (table, columns, onChange) => openDialog(({ close }) => h(ColumnSheet, { table, columns, onChange, close }));

/** @param {{ table: Table, columns: string[], onChange: (names: string[]) => void, close: () => void }} properties */
function ColumnSheet({ table, columns, onChange, close }) {
  const [names, setNames] = useState(columns);
  const all = columnFields(table).map((field) => field.name);
  /** @param {string} name */
  const toggle = (name) => setNames(names.includes(name) ? names.filter((one) => one !== name) : all.filter((one) => one === name || names.includes(one)));
  return h(Dialog, { title: t("list.columns"), action: t("list.apply"), class: "sheet-dialog", calm: true, close, run: async () => onChange(names), disabled: names.length === 0 },
    div({ class: "tick-columns" }, all.map((name) => label({ key: name }, input({ type: "checkbox", checked: names.includes(name), onChange: () => toggle(name) }), fieldName(table.key, name)))));
}
