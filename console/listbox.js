// Fields with several values: days of the week, kinds of events, and any other list, one value a line.
import { useState } from "preact/hooks";
import { div, fieldset, h, input, label, legend, span, textarea } from "./html.js";
import { tables } from "./schema.js";
import { choiceName, t, tableName } from "./words.js";

/** @typedef {import("./field.js").Control} Control */

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/** Whether a field is a list of days of the week.
 * @param {import("./schema.js").Field} field */
export const isDays = (field) => field.kind === "texts" && Array.isArray(field.default) && field.default.length > 0 && field.default.every((one) => DAYS.includes(one));

/** @param {Control & { table: string, field: string }} properties */
export const DaysBox = ({ table, field, ...control }) => h(TicksBox, { ...control, options: DAYS.map((day) => /** @type {[string, string]} */ ([day, choiceName(table, field, day)])) });

/** Checkboxes, in the order of the options; the group around them has the name. What is chosen beside them stays.
 * @param {Control & { options: [string, string][] }} properties */
export function TicksBox({ id, options, value, onChange, disabled }) {
  const chosen = new Set(/** @type {string[]} */ (Array.isArray(value) ? value : []));
  const all = new Map([...options, ...[...chosen].filter((one) => !options.some(([key]) => key === one)).map((one) => /** @type {[string, string]} */ ([one, String(one)]))]);
  /** @param {string} key */
  const toggle = (key) => onChange([...all.keys()].filter((one) => (one === key) !== chosen.has(one)));
  return div({ class: "radios" }, [...all].map(([key, name], place) => label({ key },
    input({ id: place === 0 ? id : undefined, type: "checkbox", name: id, value: key, checked: chosen.has(key), disabled, onChange: () => toggle(key) }), span(null, name))));
}

/** One value a line. What is being typed stays as it is until the field is left.
 * @param {Control} properties */
export function ListBox({ id, value, onChange, invalid, describedBy, disabled, label: name }) {
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const text = typed ?? (Array.isArray(value) ? value.join("\n") : String(value ?? ""));
  return textarea({ id, rows: Math.min(8, Math.max(3, text.split("\n").length + 1)), value: text, disabled, placeholder: t("list.one_per_line"), "aria-label": name, "aria-invalid": invalid || undefined, "aria-describedby": describedBy, spellcheck: false,
    onInput: (event) => { setTyped(event.currentTarget.value); onChange(event.currentTarget.value.split(/[\n,]/).map((one) => one.trim()).filter(Boolean)); }, onBlur: () => setTyped(null) });
}

/** Which events are sent: all, those of some kinds of records, or names of events.
 * @param {Control} properties */
export function EventsBox({ id, value, onChange, disabled, ...rest }) {
  const chosen = /** @type {string[]} */ (Array.isArray(value) ? value : []);
  const kinds = [...new Map(Object.values(tables).filter((table) => !table.parent && table.events).map((table) => [`${table.events}.*`, tableName(table.key)]))].sort(([, one], [, other]) => one.localeCompare(other));
  const all = chosen.includes("*");
  const named = chosen.filter((one) => one !== "*" && !kinds.some(([pattern]) => pattern === one));
  /** @param {string} pattern */
  const toggle = (pattern) => onChange(chosen.includes(pattern) ? chosen.filter((one) => one !== pattern) : [...chosen, pattern]);
  /** @param {boolean} every */
  const every = (every) => onChange(every ? ["*"] : []);
  return div({ class: "scopes-box" },
    fieldset({ class: "radios" }, legend({ class: "hidden" }, t("field.events")), [true, false].map((one) => label({ key: String(one) }, input({ id: one ? id : undefined, type: "radio", name: id, checked: all === one, disabled, onChange: () => every(one) }), span(null, one ? t("events.all") : t("events.some"))))),
    all ? null : fieldset({ class: "tick-columns" }, legend({ class: "hidden" }, t("events.kinds")), kinds.map(([pattern, name]) => label({ key: pattern }, input({ type: "checkbox", checked: chosen.includes(pattern), disabled, onChange: () => toggle(pattern) }), span(null, name)))),
    all ? null : div({ class: "field" }, label({ for: `${id}-named` }, t("events.named")), h(ListBox, { ...rest, id: `${id}-named`, value: named, disabled, onChange: (names) => onChange([...chosen.filter((one) => kinds.some(([pattern]) => pattern === one)), ...names]) })));
}
