// A control for each kind of field, with its label, explanation and error.
import { useEffect, useRef, useState } from "preact/hooks";
import { LinkBox } from "./combobox.js";
import { day, dayOf, decimal, money, readDay, readNumber } from "./format.js";
import { FileBox } from "./filebox.js";
import { button, div, fieldset, h, input, label, legend, option, p, select, span, textarea } from "./html.js";
import { DaysBox, EventsBox, ListBox, isDays } from "./listbox.js";
import { ScopesBox } from "./scopes.js";
import { countryName } from "./value.js";
import { choiceName, fieldHelp, fieldName, language, t } from "./words.js";
import { Icon } from "./parts.js";

/** @typedef {import("./schema.js").Field} Field */
/** @typedef {{ id: string, value: any, onChange: (value: any) => void, invalid?: boolean, describedBy?: string, disabled?: boolean, label?: string }} Control */

const COUNTRIES = ("NL BE DE FR LU GB IE AT CH ES PT IT DK SE NO FI PL CZ SK HU RO BG HR SI EE LV LT GR CY MT US CA AU NZ TR MA CN JP IN ZA BR").split(" ");
const MAX_RADIOS = 4;
/** @type {[string, string][]} */
let sorted = [];
/** All countries, by their names in the reader's language. */
const countries = () => (sorted = sorted.length > 0 ? sorted : COUNTRIES.map((code) => /** @type {[string, string]} */ ([code, countryName(code)])).sort(([, one], [, other]) => one.localeCompare(other, language)));

/** @param {{ table: string, field: Field, name?: string, value: any, onChange: (value: any) => void, error?: string, disabled?: boolean, prefix?: string, onNew?: (typed: string) => void }} properties */
export function FieldRow({ table, field, name = fieldName(table, field.name), value, onChange, error, disabled, prefix = "f", onNew }) {
  const id = `${prefix}-${field.name.replace(" ", "-")}`;
  const help = field.kind === "vat_number" && isShort(value) ? t("vat.unusual") : fieldHelp(table, field.name);
  const describedBy = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  const notes = [help ? p({ class: "help", id: `${id}-help` }, help) : null, error ? p({ class: "wrong", id: `${id}-error` }, error) : null];
  const control = { id, value, onChange, invalid: Boolean(error), describedBy, disabled };
  if (field.kind === "choice" && (field.choices?.length ?? 0) <= MAX_RADIOS && (field.choices?.length ?? 0) > 0) {
    return fieldset({ class: "field choice", "aria-describedby": describedBy, id },
      legend(null, name),
      div({ class: "radios" }, field.choices?.map((choice) => label({ key: choice },
        input({ type: "radio", name: id, value: choice, checked: (value ?? "") === choice, disabled, onChange: () => onChange(choice) }), span(null, choiceName(table, field.name, choice))))), notes);
  }
  if (isDays(field)) return fieldset({ class: "field choice", "aria-describedby": describedBy }, legend(null, name), h(DaysBox, { ...control, table, field: field.name }), notes);
  if (field.kind === "boolean") {
    return div({ class: "field switch" },
      input({ id, type: "checkbox", checked: Boolean(value), disabled, "aria-describedby": describedBy, onChange: (event) => onChange(event.currentTarget.checked) }),
      label({ for: id }, name), notes);
  }
  return div({ class: `field kind-${field.kind} ${wide(field) || field.name === "company_name" ? "wide" : ""}` },
    label({ for: id }, name, field.required ? span({ class: "required", "aria-hidden": "true" }, " *") : null), controlOf(table, field, control, onNew), notes);
}

/** Whether a VAT number has fewer digits than those of any country: the server knows how long those of the EU are, and takes others as they are.
 * @param {any} value */
const isShort = (value) => Boolean(value) && String(value).replace(/\D/g, "").length < 5;

/** @param {Field} field */
export const wide = (field) => (field.length ?? 0) > 255 && !["subject", "title", "name", "url"].includes(field.name) && !["emails", "email", "link", "choice"].includes(field.kind) || ["texts", "data"].includes(field.kind);

/** @param {string} table @param {Field} field @param {Control} control @param {(typed: string) => void} [onNew] */
export function controlOf(table, field, control, onNew) {
  switch (field.kind) {
    case "amount": case "price": case "percent": {
      const percents = field.kind === "percent" || table === "tax_rates";
      return h(NumberBox, { ...control, decimals: percents || field.name === "hours" ? 0 : 2, mark: percents ? "%" : field.name === "hours" ? "" : "€" });
    }
    case "integer": return h(NumberBox, { ...control, decimals: 0 });
    case "day": return h(DayBox, control);
    case "link": return field.refers === "files" ? h(FileBox, { ...control, picture: field.name === "logo_file_id" }) : field.refers ? h(LinkBox, { ...control, table: field.refers, value: control.value ?? "", onNew }) : h(TextBox, { ...control, length: field.length });
    case "choice": return h(ChoiceBox, { ...control, options: (field.choices ?? []).map((choice) => /** @type {[string, string]} */ ([choice, choiceName(table, field.name, choice)])), empty: !field.required });
    case "country": return h(ChoiceBox, { ...control, options: countries(), empty: true });
    case "color": return h(ColorBox, control);
    case "moment": return h(DayBox, { ...control, value: control.value ? dayOf(control.value) : "", onChange: (/** @type {string} */ day) => control.onChange(day ? `${day}T00:00:00Z` : "") });
    case "texts": return h(field.name === "scopes" ? ScopesBox : field.name === "events" ? EventsBox : ListBox, control);
    default: if (isTime(field)) return h(ChoiceBox, { ...control, options: TIMES });
      return h(TextBox, { ...control, length: field.length, type: TYPES[field.kind], long: wide(field) });
  }
}

/** A text whose default is a time of day.
 * @param {Field} field */
const isTime = (field) => field.kind === "text" && field.length === 5 && /^\d\d:\d\d$/.test(String(field.default));

/** Every half hour of a day, up to its end. @type {[string, string][]} */
const TIMES = Array.from({ length: 49 }, (_, half) => { const time = `${String(Math.floor(half / 2)).padStart(2, "0")}:${half % 2 ? "30" : "00"}`; return [time, time]; });

/** @type {Record<string, "email" | "url">} */
const TYPES = { email: "email", website: "url" };

/** @param {Control & { length?: number, type?: "text" | "email" | "url" | "password", long?: boolean, placeholder?: string, autocomplete?: string, inputMode?: "numeric" | "text" }} properties */
export function TextBox({ id, value, onChange, invalid, describedBy, disabled, length, type = "text", long, placeholder, autocomplete, inputMode, label: name }) {
  const shared = { id, value: value ?? "", disabled, placeholder, autocomplete, inputMode, "aria-label": name, "aria-invalid": invalid || undefined, "aria-describedby": describedBy, maxLength: length || undefined };
  if (long) return textarea(/** @type {any} */ ({ ...shared, rows: 4, onInput: (/** @type {any} */ event) => onChange(event.currentTarget.value) }));
  return input(/** @type {any} */ ({ ...shared, type, onInput: (/** @type {any} */ event) => onChange(event.currentTarget.value) }));
}

/** The class of a number that needs more room than its column has.
 * @param {string} shown */
export const lengthOf = (shown) => (shown.length > 15 ? "longer" : shown.length > 12 ? "long" : "");

/** @param {Control & { options: [string, string][], empty?: boolean }} properties */
export const ChoiceBox = ({ id, value, onChange, options, empty, invalid, describedBy, disabled, label: name }) =>
  div({ class: "select" }, select({ id, value: value ?? "", disabled, "aria-label": name, "aria-invalid": invalid || undefined, "aria-describedby": describedBy, onChange: (event) => onChange(event.currentTarget.value) },
    (empty || !value) && !options.some(([key]) => key === "") ? option({ value: "" }, t(empty ? "select.none" : "select.choose")) : null,
    value && !options.some(([key]) => key === value) ? option({ value }, String(value)) : null,
    options.map(([key, text]) => option({ key, value: key }, text || t("select.none")))), h(Icon, { name: "down", class: "caret" }));

/** A number in the reader's notation. The value is a decimal text with a point; what could be two numbers is neither.
 * @param {Control & { decimals?: number, mark?: string, placeholder?: string }} properties */
export function NumberBox({ id, value, onChange, invalid, describedBy, disabled, decimals = 0, mark, placeholder, label: name }) {
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  // What is no number yet is kept with a question mark, so that the server refuses it; it never counts as another number.
  // A draft brings it back as it was typed.
  const text = typed ?? (String(value ?? "").startsWith("?") ? String(value).slice(1) : null);
  const read = readNumber(text ?? "");
  const either = "either" in read ? read.either : null;
  const wrong = "wrong" in read;
  /** @param {string} text */
  const take = (text) => {
    setTyped(text);
    const read = readNumber(text);
    onChange("value" in read ? read.value : `?${text}`);
  };
  /** @param {string} number */
  const pick = (number) => { setTyped(null); onChange(number); box.current?.focus(); };
  const shown = text ?? decimal(value, value === "" || value === null || value === undefined ? 0 : decimals);
  return div({ class: !mark ? "number" : mark === "%" ? "number marked end" : "number marked" },
    mark ? span({ class: "unit-mark", "aria-hidden": "true" }, mark) : null,
    input({
      ref: box, id, type: "text", inputMode: "decimal", autocomplete: "off", disabled, placeholder, "aria-label": name, "aria-invalid": invalid || wrong || Boolean(either) || undefined, "aria-describedby": describedBy,
      value: shown, class: lengthOf(shown),
      onInput: (event) => take(event.currentTarget.value), onFocus: (event) => event.currentTarget.select(),
      onBlur: () => { if (!either && !wrong) setTyped(null); },
    }),
    either ? div({ class: "either", role: "group", "aria-label": t("number.which") }, span(null, t("number.which")),
      either.map((number) => button({ key: number, type: "button", class: "button small", onClick: () => pick(number) }, decimals === 2 ? money(number) : decimal(number)))) : null,
    wrong ? p({ class: "wrong" }, t("number.wrong")) : null);
}

/** A day: typed in many ways, or chosen from the browser's calendar.
 * @param {Control & { placeholder?: string }} properties */
export function DayBox({ id, value, onChange, invalid, describedBy, disabled, placeholder, label: name }) {
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  const read = typed === null ? value : readDay(typed);
  useEffect(() => { if (typed !== null && read === value && document.activeElement?.id !== id) setTyped(null); });
  return div({ class: "day" },
    input({
      id, type: "text", autocomplete: "off", disabled, placeholder, "aria-label": name, "aria-invalid": invalid || read === null || undefined, "aria-describedby": describedBy,
      value: typed ?? day(value),
      onInput: (event) => { setTyped(event.currentTarget.value); const found = readDay(event.currentTarget.value); if (found !== null) onChange(found); },
      onFocus: (event) => event.currentTarget.select(), onBlur: () => { if (read !== null) setTyped(null); },
    }),
    button({ type: "button", class: "calendar", tabIndex: -1, disabled, "aria-label": t("day.pick"), onClick: () => picker.current?.showPicker?.() }, h(Icon, { name: "calendar" })),
    input({ ref: picker, type: "date", class: "picker", tabIndex: -1, "aria-hidden": "true", value: value ?? "", onChange: (event) => { setTyped(null); onChange(event.currentTarget.value); } }),
    read === null ? p({ class: "wrong" }, t("day.wrong")) : null);
}

/** @param {Control} properties */
const ColorBox = ({ id, value, onChange, disabled, describedBy, invalid }) => div({ class: "color" },
  input({ type: "color", value: /^#[0-9a-f]{6}$/i.test(value ?? "") ? value : "#000000", disabled, "aria-hidden": "true", tabIndex: -1, onInput: (event) => onChange(event.currentTarget.value) }),
  input({ id, type: "text", value: value ?? "", disabled, placeholder: "#1f4e79", "aria-invalid": invalid || undefined, "aria-describedby": describedBy, onInput: (event) => onChange(event.currentTarget.value) }));
