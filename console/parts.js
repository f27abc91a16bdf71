// The small parts that screens are made of.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./api.js";
import { moment, ago } from "./format.js";
import { a, button, div, dd, dl, dt, h, h1, h2, header, li, nav, p, section, span, strong, time, ul } from "./html.js";
import { Icon } from "./icons.js";
import { toneOf } from "./resources.js";
import { choiceName, errorText, t } from "./words.js";

/** @typedef {import("./html.js").Children} Children */

/** @param {{ icon?: string, primary?: boolean, danger?: boolean, quiet?: boolean, small?: boolean, href?: string, type?: "button" | "submit",
 *   disabled?: boolean, busy?: boolean, label?: string, onClick?: (event: MouseEvent) => void, children?: Children, form?: string, target?: string, class?: string }} properties */
export function Button({ icon, primary, danger, quiet, small, href, type = "button", disabled, busy, label, onClick, children, form, target, class: extra = "" }) {
  const classes = ["button", primary && "primary", danger && "danger", quiet && "quiet", small && "small", !children && "square", busy && "busy", extra].filter(Boolean).join(" ");
  const inside = [icon ? h(Icon, { name: icon }) : null, children ? span(null, children) : null];
  const name = children ? undefined : label;
  if (href) return a({ class: classes, href, "aria-label": name, title: label, target }, inside);
  return button({ class: classes, type, disabled: disabled || busy, "aria-busy": busy || undefined, "aria-label": name, title: label, onClick, form }, inside);
}

/** A status: a tone and a word.
 * @param {{ table: string, field: string, value: unknown }} properties */
export function Pill({ table, field, value }) {
  if (value === null || value === undefined || value === "") return null;
  return span({ class: `pill ${toneOf(String(value))}` }, choiceName(table, field, String(value)));
}

/** @param {{ title: Children, over?: Children, beside?: Children, children?: Children }} properties The children are the actions. */
export function Head({ title, over, beside, children }) {
  return header({ class: "head" },
    div({ class: "head-words" }, over ? div({ class: "over" }, over) : null, div({ class: "head-line" }, h1({ tabIndex: -1 }, title), beside)),
    children ? div({ class: "actions" }, children) : null);
}

/** @param {{ title?: Children, actions?: Children, children?: Children, class?: string }} properties */
export function Card({ title, actions, children, class: extra = "" }) {
  return section({ class: `card ${extra}` },
    title || actions ? div({ class: "card-head" }, h2(null, title), actions ? div({ class: "actions" }, actions) : null) : null, children);
}

/** @param {{ facts: [Children, Children][] }} properties Facts without a value are left out. */
export function Facts({ facts }) {
  const shown = facts.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return dl({ class: "facts" }, shown.map(([name, value], place) => div({ key: place }, dt(null, name), dd(null, value))));
}

/** @param {{ at: string | null | undefined }} properties */
export const Moment = ({ at }) => (at ? time({ dateTime: at, title: moment(at) }, ago(at)) : null);

/** @param {{ icon?: string, title: Children, text?: Children, children?: Children }} properties */
export const Empty = ({ icon = "files", title, text, children }) =>
  div({ class: "empty" }, span({ class: "empty-icon" }, h(Icon, { name: icon })), strong(null, title), text ? p(null, text) : null, children ? div({ class: "actions" }, children) : null);

/** @param {{ rows?: number }} properties */
export const Skeleton = ({ rows = 4 }) => div({ class: "skeleton", "aria-hidden": "true" }, Array.from({ length: rows }, (_, place) => span({ key: place })));

/** An error that stays: the sentence, what to do, the request id.
 * @param {{ error: unknown, retry?: () => void }} properties */
export function Problem({ error, retry }) {
  const known = error instanceof ApiError ? error : null;
  return div({ class: "problem", role: "alert" }, h(Icon, { name: "alert" }),
    div(null, strong(null, errorText(known ?? { message: error instanceof Error ? error.message : "" })),
      known?.requestId ? p({ class: "soft" }, `${t("error.request")} ${known.requestId}`) : null),
    retry ? h(Button, { small: true, onClick: retry }, t("again")) : null);
}

/** @param {{ items: { href: string, label: Children, count?: number | undefined, current?: boolean }[], label: string }} properties */
export const Tabs = ({ items, label }) =>
  nav({ class: "tabs", "aria-label": label }, items.map((item) =>
    a({ key: item.href, href: item.href, "aria-current": item.current ? "page" : undefined }, item.label,
      item.count !== undefined ? span({ class: "count" }, String(item.count)) : null)));

/** @typedef {{ label: string, icon?: string, run?: () => void, href?: string, danger?: boolean, hidden?: boolean, target?: string, note?: string }} MenuItem */

/** A button with a menu.
 * @param {{ label: string, icon?: string, items: MenuItem[], primary?: boolean, quiet?: boolean, showLabel?: boolean, children?: Children, align?: "left" | "right", class?: string }} properties */
export function Menu({ label, icon, items, primary, quiet, showLabel, children, align = "right", class: extra = "" }) {
  const [open, setOpen] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useOutside(box, open, () => setOpen(false));
  useEffect(() => {
    if (open) /** @type {HTMLElement | null} */ (box.current?.querySelector("[role=menuitem]"))?.focus();
  }, [open]);
  const shown = items.filter((item) => !item.hidden);
  if (shown.length === 0) return null;
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    const all = /** @type {HTMLElement[]} */ ([...(box.current?.querySelectorAll("[role=menuitem]") ?? [])]);
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape" && open) {
      setOpen(false);
      /** @type {HTMLElement | null} */ (box.current?.querySelector("button"))?.focus();
    } else if (next !== undefined && open) {
      all[(next + all.length) % all.length]?.focus();
    } else if (event.key === "ArrowDown") {
      setOpen(true);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const classes = ["button", primary && "primary", quiet && "quiet", !showLabel && !children && "square"].filter(Boolean).join(" ");
  return div({ class: `menu ${extra}`, ref: box, onKeyDown },
    button({ type: "button", class: classes, "aria-haspopup": "menu", "aria-expanded": open, "aria-label": showLabel || children ? undefined : label, title: showLabel || children ? undefined : label, onClick: () => setOpen(!open) },
      icon ? h(Icon, { name: icon }) : null, children ?? (showLabel ? span(null, label) : null), showLabel ? h(Icon, { name: "down", class: "caret" }) : null),
    open ? ul({ class: `menu-list ${align}`, role: "menu", "aria-label": label }, shown.map((item) =>
      li({ key: item.label, role: "none" }, item.href
        ? a({ role: "menuitem", tabIndex: -1, href: item.href, target: item.target, onClick: () => setOpen(false) }, item.icon ? h(Icon, { name: item.icon }) : null, item.label)
        : button({ role: "menuitem", tabIndex: -1, type: "button", class: item.danger ? "danger" : "", onClick: () => { setOpen(false); item.run?.(); } },
          item.icon ? h(Icon, { name: item.icon }) : null, span(null, item.label, item.note ? span({ class: "soft" }, ` ${item.note}`) : null))))) : null);
}

/** Calls back when something outside a box is pressed.
 * @param {{ current: HTMLElement | null }} box @param {boolean} open @param {() => void} close */
export function useOutside(box, open, close) {
  useEffect(() => {
    if (!open) return;
    const outside = (/** @type {Event} */ event) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) close();
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
    };
  }, [open]);
}

// Messages at the bottom of the page.

/** @typedef {{ id: number, text: string, error: boolean, undo?: () => void, detail?: string }} Toast */
const toasts = signal(/** @type {Toast[]} */ ([]));
let lastToast = 0;
const SHOWN = 6000;

/** Says that something is done, for six seconds.
 * @param {string} text @param {{ undo?: () => void, error?: boolean, detail?: string }} [options] */
export function say(text, options = {}) {
  const id = ++lastToast;
  toasts.value = [...toasts.value.slice(-3), { id, text, error: options.error ?? false, undo: options.undo, detail: options.detail }];
  if (!options.error) setTimeout(() => unsay(id), SHOWN);
  return () => unsay(id);
}

/** Says what went wrong, until it is closed.
 * @param {unknown} error */
export function sayError(error) {
  const known = error instanceof ApiError ? error : null;
  const first = known?.details[0];
  const sentence = errorText(known ?? { message: error instanceof Error ? error.message : String(error) });
  say(first && known?.code === "validation_failed" ? `${sentence} ${known.message}` : sentence, { error: true, detail: known?.requestId ? `${t("error.request")} ${known.requestId}` : "" });
}

/** @param {number} id */
const unsay = (id) => void (toasts.value = toasts.value.filter((toast) => toast.id !== id));

export const Toasts = () => div({ class: "toasts" }, toasts.value.map((toast) =>
  div({ key: toast.id, class: toast.error ? "toast bad" : "toast", role: toast.error ? "alert" : "status" },
    h(Icon, { name: toast.error ? "alert" : "check" }), div(null, toast.text, toast.detail ? div({ class: "soft" }, toast.detail) : null),
    toast.undo ? button({ type: "button", class: "link", onClick: () => { unsay(toast.id); toast.undo?.(); } }, t("undo")) : null,
    button({ type: "button", class: "button quiet square small", "aria-label": t("close"), onClick: () => unsay(toast.id) }, h(Icon, { name: "close" })))));

/** Deletes after six seconds in which it can be undone; at once when the page is left.
 * @param {string} text @param {() => Promise<unknown>} send */
export function deleteLater(text, send) {
  let open = true;
  const run = () => {
    if (!open) return;
    open = false;
    removeEventListener("pagehide", run);
    send().catch(sayError);
  };
  const timer = setTimeout(run, SHOWN);
  addEventListener("pagehide", run);
  say(text, { undo: () => { open = false; clearTimeout(timer); removeEventListener("pagehide", run); say(t("undone")); } });
}
