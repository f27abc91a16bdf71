// Controls of the flow editor for people who do not program: how long to wait, when to start, and the fields of the event.
import { useState } from "preact/hooks";
import { useLoad } from "../api.js";
import { tableOf } from "../change.js";
import { ChoiceBox, NumberBox, TextBox } from "../field.js";
import { button, div, h, input, span } from "../html.js";
import { ListBox, TicksBox } from "../listbox.js";
import { Icon, Menu } from "../parts.js";
import { eventFieldName, pathName } from "../steps.js";
import { choiceName, lastOf, t, tableName } from "../words.js";

/** @typedef {import("../api.js").Item} Item */
/** @typedef {{ id: string, value: string, onChange: (value: any) => void }} Control */

/** @type {[string, RegExp, (number: string) => string][]} */
const UNITS = [["days", /^P(\d+)D$/, (number) => `P${number}D`], ["hours", /^PT(\d+)H$/, (number) => `PT${number}H`], ["minutes", /^PT(\d+)M$/, (number) => `PT${number}M`]];

/** A duration as a number and a unit: P3D is 3 days. Anything else stays a text.
 * @param {Control & { dayOnly?: boolean }} properties */
export function DurationBox({ id, value, onChange, dayOnly }) {
  const found = UNITS.find(([, pattern]) => pattern.test(value ?? ""));
  const [unit, setUnit] = useState(found?.[0] ?? "days");
  if (value && !found) return h(TextBox, { id, value, onChange });
  const number = found ? (found[1].exec(value)?.[1] ?? "") : "";
  /** @param {string} amount @param {string} of */
  const set = (amount, of) => onChange(/^\d+$/.test(amount) ? UNITS.find(([name]) => name === of)?.[2](amount) : "");
  return div({ class: "duration" }, h(NumberBox, { id, value: number, onChange: (amount) => set(String(amount), unit) }),
    h(ChoiceBox, { id: `${id}-unit`, label: t("flow.unit"), value: unit, onChange: (next) => { setUnit(next); set(number, next); }, options: UNITS.slice(0, dayOnly ? 1 : 3).map(([name]) => /** @type {[string, string]} */ ([name, t(/** @type {any} */ (`unit.${name}`))])) }));
}

/** @type {[string, string][]} */
const SCHEDULES = [["0 8 * * *", "schedule.daily"], ["0 8 * * mon-fri", "schedule.workdays"], ["0 8 * * mon", "schedule.weekly"], ["0 8 1 * *", "schedule.monthly"]];

/** When a flow starts: often used moments, or a cron expression.
 * @param {Control} properties */
export function ScheduleBox({ id, value, onChange }) {
  const [own, setOwn] = useState(Boolean(value) && !SCHEDULES.some(([cron]) => cron === value));
  return div({ class: "duration" },
    h(ChoiceBox, { id, value: own ? "own" : value, onChange: (next) => { setOwn(next === "own"); onChange(next === "own" ? value : next); }, options: [...SCHEDULES.map(([cron, word]) => /** @type {[string, string]} */ ([cron, t(/** @type {any} */ (word))])), ["own", t("schedule.own")]] }),
    own ? h(TextBox, { id: `${id}-cron`, label: t("schedule.own"), value, placeholder: "30 8 * * mon-fri", onChange }) : null);
}

/** @typedef {{ path: string, name: string, options?: [string, string][], text?: boolean }} EventField `options`: what it can be, if that is known. `text`: for texts only. */

/** What an event has, by name: its own data, such as a message or a mail, the fields of the record that it is about, and what texts can have.
 * @param {string} event @returns {EventField[]} */
export function useEventFields(event) {
  const data = useLoad("/v1/automation/vocabulary").answer?.data;
  const found = data?.events?.find((/** @type {any} */ one) => one.event === event);
  const type = /** @type {string} */ (found?.entity_types?.[0] ?? "");
  const fields = /** @type {any[]} */ (data?.records?.[type] ?? []);
  /** @param {string} of @param {any} field */
  const optionsOf = (of, field) => {
    const name = lastOf(field.path);
    const table = tableOf(of);
    if (field.type === "boolean") return yesOrNo();
    const choices = /** @type {string[] | undefined} */ (table?.fields.find((one) => one.name === name)?.choices ?? data.records[of]?.find((/** @type {any} */ one) => one.path === `data.${name}`)?.choices);
    // Mails without a template.
    return choices && [...choices, ...(name === "send_type" ? ["flow", "ticket"] : [])].map((one) => /** @type {[string, string]} */ ([one, choiceName(table?.key ?? "", name, one)]));
  };
  const beside = /** @type {any[]} */ (found?.fields ?? []).filter((field) => field.type !== "array" && !field.path.endsWith(".id"));
  const key = tableOf(type)?.key ?? "";
  return [...beside.map((field) => ({ path: field.path, name: pathName(field.path), options: optionsOf(field.path.split(".")[1].replace(/^mail$/, "mail_template"), field) })),
    ...fields.filter((field) => !["array", "object"].includes(field.type)).map((field) => ({ path: field.path, name: eventFieldName(key, lastOf(field.path)), options: optionsOf(type, field) })),
    ...["data.id", "account.name", "account.owner_email"].slice(key ? 0 : 1).map((path) => ({ path, name: path === "data.id" ? `${tableName(key, 1)} › Id` : pathName(path), text: true }))];
}

/** @returns {[string, string][]} */
const yesOrNo = () => [["true", t("yes")], ["false", t("no")]];

/** The field of a condition: one of the event by its name, or a path.
 * @param {Control & { label: string, root: string, fields: EventField[] }} properties */
export function FieldBox({ id, label, value, root, fields: all, onChange }) {
  const [own, setOwn] = useState(false);
  const fields = all.filter((field) => !field.text);
  if (own || fields.length === 0) return h(TextBox, { id, label, value, onChange });
  const known = fields.map((field) => /** @type {[string, string]} */ ([field.path.replace(/^data\./, root), field.name]));
  const now = known.some(([path]) => path === value) || value === root ? "" : pathName(value);
  return h(ChoiceBox, { id, label, value: value === root ? "" : value, onChange: (next) => { setOwn(next === OWN); if (next !== OWN) onChange(next); },
    options: [...(now ? [/** @type {[string, string]} */ ([value, now])] : []), ...known.filter(([, name]) => name !== now), [OWN, t("flow.own_field")]] });
}

const OWN = "own";

/** @param {Item} condition @param {EventField[]} fields */
const fieldOf = ({ field = "" }, fields) => fields.find((one) => short(one.path) === short(field));

/** The same for a record when the flow starts and later; what is in its meta is beside its fields, too.
 * @param {string} path */
const short = (path) => path.replace(/^record\./, "data.").replace(/^data\.meta\./, "data.");

/** A condition with another field or comparison, and a value that fits it.
 * @param {Item} condition @param {Item} changes @param {EventField[]} fields @returns {Item} */
export function changedCondition(condition, changes, fields) {
  const next = { ...condition, ...changes };
  const { op, value } = next;
  const kept = "field" in changes && (fieldOf(condition, fields)?.options || fieldOf(next, fields)?.options) ? "" : value;
  const one = Array.isArray(kept) ? kept[0] ?? "" : condition.op === "exists" ? "" : kept ?? "";
  if (op === "exists") return { ...next, value: typeof value === "boolean" ? value : true };
  return { ...next, value: op !== "in" ? one : Array.isArray(kept) ? kept : one === "" ? [] : [one] };
}

/** What a field is compared with: its choices by name, what is typed or, in a step, another field by name.
 * @param {{ id: string, condition: Item, root: string, fields: EventField[], onChange: (value: any) => void }} properties */
export function ValueBox({ root, ...properties }) {
  const { condition, fields, onChange } = properties;
  // As it is now; only the field itself as it was. What is of the event alone, such as a message, stays as it is.
  return div({ class: "value-box" }, h(ValueControl, properties), root !== "record." || ["in", "exists"].includes(condition.op) || /^\{\{/.test(condition.value) ? null
    : h(FieldPicker, { fields: fields.filter((field) => !field.text), label: t("flow.own_field"), onPick: (field) => onChange(`{{ ${field === fieldOf(condition, fields) ? field.path : field.path.replace(/^data\.(?=(meta\.)?\w+$)/, root)} }}`) }));
}

/** @param {{ id: string, condition: Item, fields: EventField[], onChange: (value: any) => void }} properties */
function ValueControl({ id, condition, fields, onChange }) {
  const [typing, setTyping] = useState(false);
  const { op, value } = condition;
  const name = t("flow.value");
  const options = op === "exists" ? yesOrNo() : ["eq", "ne", "in"].includes(op) ? fieldOf(condition, fields)?.options : undefined;
  const [, path] = (typeof value === "string" && /^\{\{ *([\w.[\]]+) *\}\}$/.exec(value)) || [];
  if (path && !typing) {
    const word = fieldOf({ field: path }, fields)?.name ?? (pathName(path) || path);
    // The record may have been changed since the flow was started.
    const shown = condition.field?.startsWith("record.") && path.startsWith("data.") ? t("flow.at_start", { name: word }) : word;
    return div(null, span({ class: "chip" }, button({ type: "button", title: value, "aria-label": `${name}: ${shown}`, onClick: () => setTyping(true) }, shown),
      button({ type: "button", class: "chip-close", "aria-label": t("clear"), onClick: () => { setTyping(!options); onChange(op === "in" ? [] : ""); } }, h(Icon, { name: "close" }))));
  }
  if (options && !typing) {
    return op === "in" ? div({ role: "group", "aria-label": name }, h(TicksBox, { id, value, options, onChange }))
      : h(ChoiceBox, { id, label: name, value: String(value ?? op === "exists"), onChange: (next) => onChange(readValue(next)), options });
  }
  if (op === "in" && !path) return h(ListBox, { id, label: name, value, onChange: (all) => onChange(all.map(readValue)) });
  return input({ id, type: "text", ref: typing ? focus : undefined, "aria-label": name, value: typeof value === "string" ? value : JSON.stringify(value ?? ""), onFocus: () => setTyping(true), onBlur: () => setTyping(false), onInput: (event) => onChange(readValue(event.currentTarget.value)) });
}

/** @param {HTMLElement | null} box */
const focus = (box) => box?.focus();

/** Numbers, booleans and lists are typed as JSON; anything else is a text.
 * @param {string} typed */
function readValue(typed) {
  if (!/^(-?\d+(\.\d+)?|true|false|null|\[.*\])$/.test(typed)) return typed;
  try { return JSON.parse(typed); } catch { return typed; }
}

/** A text of a step: the fields in it are read and inserted by name, and stored by path.
 * @param {Control & { fields: EventField[], invalid: boolean, describedBy: string | undefined, long: boolean }} properties */
export function TemplateBox({ fields, ...control }) {
  const { id, value, onChange } = control;
  const [typed, setTyped] = useState("");
  const stored = (/** @type {string} */ text) => renamed(text, (name) => fields.find((field) => field.name === name)?.path);
  const change = (/** @type {string} */ text) => { setTyped(text); onChange(stored(text)); };
  return [h(TextBox, { ...control, value: stored(typed) === value ? typed : renamed(value, (path) => (path.startsWith("record.") ? undefined : fieldOf({ field: path }, fields)?.name)), onChange: change }),
    h(FieldPicker, { fields, label: t("flow.insert_field"), children: t("flow.insert_field"), class: "field-picker", onPick: ({ name }) => {
      const box = /** @type {HTMLInputElement} */ (document.getElementById(id));
      const at = box.selectionStart ?? 0;
      box.setRangeText(`${/[^\s(]$/.test(box.value.slice(0, at)) ? " " : ""}{{ ${name} }}`, at, box.selectionEnd ?? at, "end");
      box.focus();
      change(box.value);
    } })];
}

/** A text with other names in its placeholders, where there are any.
 * @param {string} text @param {(name: string) => string | undefined} other */
const renamed = (text, other) => text.replace(/\{\{ *([^{}|]+?) *(?=\||\}\})/g, (whole, name) => (other(name) ? `{{ ${other(name)} ` : whole));

/** @param {{ fields: EventField[], label: string, onPick: (field: EventField) => void, children?: any, class?: string }} properties */
const FieldPicker = ({ fields, onPick, ...button }) =>
  h(Menu, { ...button, icon: "plus", quiet: true, items: fields.map((field) => ({ label: field.name, run: () => onPick(field) })) });
