// A combobox over the records of a table: type to search, choose with the arrows, or make a new one.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api.js";
import { button, div, h, input, li, span, ul } from "./html.js";
import { Icon, useOutside } from "./parts.js";
import { can, tables, titleOf } from "./schema.js";
import { t, tableName } from "./words.js";
import { learn, linked, ownName } from "./value.js";

/** @typedef {import("./api.js").Item} Item */
const WAIT = 150;

/** @param {import("./schema.js").Table} table @param {Item} item */
const called = (table, item) => ownName(table.key, titleOf(table, item));

/**
 * @param {object} properties
 * @param {string} properties.id
 * @param {string} properties.table
 * @param {string} properties.value The id of the chosen record.
 * @param {(id: string, item: Item | null) => void} properties.onChange
 * @param {string} [properties.query] Further parameters of the search.
 * @param {boolean} [properties.invalid]
 * @param {string} [properties.describedBy]
 * @param {boolean} [properties.disabled]
 * @param {string} [properties.placeholder]
 * @param {(typed: string) => void} [properties.onNew]
 * @param {string} [properties.label]
 */
export function LinkBox({ id, table, value, onChange, query = "", invalid, describedBy, disabled, placeholder, onNew, label }) {
  const kind = tables[table];
  const chosen = value ? linked(table, value).value : null;
  const name = chosen && kind ? called(kind, chosen) : "";
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const { found, open, setOpen, active, setActive } = useSearch(table, typed, query);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const leave = () => { setOpen(false); setTyped(null); };
  useOutside(box, open || typed !== null, leave);

  const options = found.map((item) => ({ key: item.id, label: kind ? called(kind, item) : item.id, detail: secondLine(item), run: () => pick(item) }));
  if (onNew && kind && can(kind, "create")) {
    options.push({ key: "new", label: typed ? t("combobox.new_named", { name: typed }) : t("combobox.new", { one: tableName(table, 1).toLowerCase() }), detail: "", run: () => { leave(); onNew(typed ?? ""); } });
  }
  /** @param {Item} item */
  function pick(item) {
    learn(table, item);
    onChange(item.id, item);
    leave();
  }
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!open) return void setOpen(true);
      setActive((active + (event.key === "ArrowDown" ? 1 : -1) + options.length) % Math.max(1, options.length));
    } else if (event.key === "Enter" && open && !event.ctrlKey) {
      event.preventDefault();
      options[active]?.run();
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      event.stopPropagation();
      leave();
    } else if (event.key === "Tab" && open && typed) {
      options[active]?.run();
    }
  };
  return div({ class: "combobox", ref: box },
    input({
      id, type: "text", role: "combobox", autocomplete: "off", spellcheck: false, disabled, "aria-label": label,
      "aria-expanded": open, "aria-controls": `${id}-list`, "aria-autocomplete": "list", "aria-invalid": invalid || undefined, "aria-describedby": describedBy,
      "aria-activedescendant": open && options[active] ? `${id}-${active}` : undefined,
      value: typed ?? name, placeholder: placeholder ?? t("combobox.search"),
      onInput: (event) => { setTyped(event.currentTarget.value); setOpen(true); setActive(0); if (event.currentTarget.value === "") onChange("", null); },
      onFocus: (event) => event.currentTarget.select(),
      onClick: () => setOpen(true), onKeyDown,
    }),
    value && !disabled ? button({ type: "button", class: "clear", tabIndex: -1, "aria-label": t("clear"), onClick: () => { onChange("", null); setTyped(null); } }, h(Icon, { name: "close" })) : h(Icon, { name: "down", class: "caret" }),
    open ? ul({ class: "options", role: "listbox", id: `${id}-list`, "aria-label": tableName(table) },
      options.length === 0 ? li({ class: "soft none" }, t("combobox.nothing")) : null,
      options.map((option, place) => li({
        key: option.key, id: `${id}-${place}`, role: "option", "aria-selected": place === active, class: option.key === "new" ? "new" : "",
        onPointerDown: (event) => { event.preventDefault(); option.run(); }, onPointerMove: () => setActive(place),
      }, option.key === "new" ? h(Icon, { name: "plus" }) : null, span(null, option.label), option.detail ? span({ class: "soft" }, option.detail) : null))) : null);
}

/** Searches while somebody types; the answer to what was typed before is dropped.
 * @param {string} table @param {string | null} typed @param {string} query */
export function useSearch(table, typed, query) {
  const [found, setFound] = useState(/** @type {Item[]} */ ([]));
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const kind = tables[table];
  useEffect(() => {
    if (!open || !kind) return;
    const abort = new AbortController();
    const words = (typed ?? "").trim();
    const timer = setTimeout(() => {
      const parameters = new URLSearchParams(query);
      parameters.set("per_page", kind.search ? "8" : "100");
      if (kind.search && words) parameters.set("search", words);
      get(`${kind.path}?${parameters}`, { abort: abort.signal, quiet: true }).then((answer) => {
        const items = /** @type {Item[]} */ (answer.data);
        setFound(kind.search ? items : items.filter((item) => called(kind, item).toLowerCase().includes(words.toLowerCase())));
      }, () => {});
    }, typed ? WAIT : 0);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [typed, open, query]);
  return { found, open, setOpen, active, setActive };
}

/** @param {Item} item */
export const secondLine = (item) => [item.company_name ? [item.firstname, item.lastname].filter(Boolean).join(" ") : "", item.city, item.code, item.number !== undefined && item.title ? item.number : ""].filter(Boolean).join(" · ");
