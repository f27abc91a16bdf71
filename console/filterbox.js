// The controls of one filter, by the kind of its field.
import { useEffect, useRef } from "preact/hooks";
import { LinkBox } from "./combobox.js";
import { DayBox } from "./field.js";
import { button, div, form, h, input, label } from "./html.js";
import { Icon, usePopover } from "./parts.js";
import { setQuery } from "./router.js";
import { choiceName, fieldName, t } from "./words.js";

/** @typedef {import("./schema.js").Table} Table */
/** @typedef {import("./schema.js").Field} Field */

/** @param {{ table: Table, field: Field, parameters: URLSearchParams, close: () => void }} properties */
export function FilterBox({ table, field, parameters, close }) {
  const name = field.filter ?? "";
  const value = parameters.get(name) ?? "";
  /** @param {Record<string, string>} changes */
  const set = (changes) => setQuery({ ...changes, page: "" });
  /** @param {[string, string][]} options */
  const choices = (options) => options.map(([key, text]) => button({ key, type: "button", "aria-pressed": key === value, onClick: () => { set({ [name]: key }); close(); } }, text, key === value ? h(Icon, { name: "check" }) : null));
  const inside = field.range?.length ? div({ class: "range" }, field.range.map((parameter, place) => div({ key: parameter, class: "field" },
        label({ for: `filter-${parameter}` }, place === 0 ? t("list.from") : t("list.to")), h(DayBox, { id: `filter-${parameter}`, value: parameters.get(parameter) ?? "", onChange: (day) => set({ [parameter]: day }) }))))
    : field.refers ? h(LinkBox, { id: `filter-${name}`, table: field.refers, value, label: fieldName(table.key, field.name), onChange: (id) => { set({ [name]: id }); if (id) close(); } })
    : field.kind === "boolean" ? choices([["1", t("yes")], ["0", t("no")]])
    : field.kind === "choice" && field.choices ? choices(field.choices.map((choice) => [choice, choiceName(table.key, field.name, choice)]))
    : form({ onSubmit: (event) => { event.preventDefault(); close(); } }, input({ type: "text", value, "aria-label": fieldName(table.key, field.name), onChange: (event) => set({ [name]: event.currentTarget.value.trim() }) }));
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector("input, button"))?.focus(), []);
  // Beside its chip, or beside the menu that it came from.
  usePopover(box, ".filter-box", true, "left", () => document.getElementById(`chip-${field.name}`) ?? box.current?.parentElement?.querySelector(".menu > button"));
  return div({ ref: box }, div({ class: "filter-box", popover: "manual", role: "dialog", "aria-label": fieldName(table.key, field.name) }, div({ class: "soft" }, fieldName(table.key, field.name)), inside));
}
