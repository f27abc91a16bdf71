// The small parts that screens are made of.
import { effect, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, MAX_FILE, gone, keepDeletion, reached, remove } from "./api.js";
import { readDraft } from "./drafts.js";
import { ago, count, moment, size } from "./format.js";
import { a, button, details, div, dd, dl, dt, h, h1, h2, header, li, nav, p, path, section, span, strong, summary, svg, time, ul } from "./html.js";
import { toneOf } from "./resources.js";
import { go, place } from "./router.js";
import { me } from "./schema.js";
import { choiceName, detailText, errorText, fieldName, lastOf, said, t, tableName } from "./words.js";

/** @typedef {import("./html.js").Children} Children */

const narrow = matchMedia("(max-width: 45em)");
/** Whether rows are cards and sheets replace menus, as the style has it. */
export const onPhone = signal(narrow.matches);
narrow.addEventListener("change", () => { onPhone.value = narrow.matches; });
const fingers = matchMedia("(pointer: coarse)");
/** Whether files cannot be dragged here, as on phones and tablets. */
export const isTouched = () => onPhone.value || fingers.matches;

/** @param {{ icon?: string, primary?: boolean, danger?: boolean, quiet?: boolean, small?: boolean, href?: string, type?: "button" | "submit",
 *   disabled?: boolean, busy?: boolean, open?: boolean, label?: string, name?: string, onClick?: (event: MouseEvent) => void, children?: Children, form?: string, target?: string, download?: string, class?: string }} properties `name` tells buttons with the same word apart; it begins with that word. */
export function Button({ icon, primary, danger, quiet, small, href, type = "button", disabled, busy, open, label, name: full, onClick, children, form, target, download, class: extra = "" }) {
  const classes = ["button", primary && "primary", danger && "danger", quiet && "quiet", small && "small", !children && "square", busy && "busy", extra].filter(Boolean).join(" ");
  const inside = [icon ? h(Icon, { name: icon }) : null, children ? span(null, children) : null];
  const name = full ?? (children ? undefined : label);
  if (href) return a({ class: classes, href, "aria-label": name, title: label, target, download, onClick }, inside);
  return button({ class: classes, type, disabled: disabled || busy, "aria-busy": busy || undefined, "aria-expanded": open, "aria-label": name, title: label, onClick, form }, inside);
}

/** How soon a second click may follow the first one without being meant. */
const DOUBLE_CLICK = 500;

/** One thing at a time: what is asked while the last one runs, or just after it, is a double click.
 * @returns {[boolean, (work: () => Promise<unknown>) => void]} */
export function useTurn() {
  const taken = useRef(false);
  const [busy, setBusy] = useState(false);
  return [busy, (work) => {
    if (taken.current) return;
    taken.current = true;
    setBusy(true);
    void work().catch(sayError).finally(() => setTimeout(() => { taken.current = false; setBusy(false); }, DOUBLE_CLICK));
  }];
}

/** A status: a tone and a word.
 * @param {{ table: string, field: string, value: unknown, tone?: string }} properties */
export function Pill({ table, field, value, tone }) {
  if (value === null || value === undefined || value === "") return null;
  return span({ class: `pill ${tone ?? toneOf(String(value))}` }, choiceName(table, field, String(value)));
}

/** @param {{ title: Children, over?: Children, beside?: Children, children?: Children, tab?: Children }} properties The children are the actions. `tab` is the title of the window. */
export function Head({ title, over, beside, children, tab = title }) {
  // What had the focus may have gone with the page before, as after finalizing.
  useEffect(() => { if (document.activeElement === document.body) focusHeading(); }, []);
  useTab(tab);
  return header({ class: "head" },
    div({ class: "head-words" }, over ? div({ class: "over" }, over) : null, div({ class: "head-line" }, h1({ tabIndex: -1 }, title), beside)),
    children ? div({ class: "actions" }, children) : null);
}

/** Names the window.
 * @param {Children} tab */
export const useTab = (tab) => useEffect(() => { if (typeof tab === "string" && tab) document.title = `${tab} · ${me.value.account.name ?? "Kantoor"}`; }, [tab]);

/** Puts the focus at the beginning of the page. */
export const focusHeading = () => /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus({ preventScroll: true });

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

/** A bar after 150 ms; "still busy" after 8 s.
 * @param {{ on: boolean }} properties */
export function Progress({ on }) {
  const [late, setLate] = useState(0);
  useEffect(() => {
    if (!on) return setLate(0);
    const soon = setTimeout(() => setLate(1), 150);
    const long = setTimeout(() => setLate(2), 8000);
    return () => { clearTimeout(soon); clearTimeout(long); };
  }, [on]);
  return div({ class: late ? "progress on" : "progress", role: "status" }, late === 2 ? span(null, t("busy")) : null);
}

/** Says that what was typed before is back, and if it was sent, that it may be saved.
 * @param {{ discard: () => void, draft?: string }} properties */
export function Restored({ discard, draft = "" }) {
  const [sent] = useState(() => readDraft(`sent ${draft}`)?.value.answered === false);
  // The button goes with the notice; the focus begins again at the top of what is left.
  const onClick = () => {
    const place = document.querySelector("dialog[open] h2, main h1");
    discard();
    requestAnimationFrame(() => { if (document.activeElement === document.body && place instanceof HTMLElement) { place.tabIndex = -1; place.focus(); } });
  };
  return div({ class: "notice" }, span(null, t(sent ? "draft.sent" : "draft.restored")), h(Button, { small: true, onClick }, t("draft.discard")));
}

/** An error that stays: the sentence, what to do, and the request id of what nobody expected.
 * @param {{ error: unknown, retry?: () => void }} properties */
export function Problem({ error, retry }) {
  const known = error instanceof ApiError ? error : null;
  return div({ class: "problem", role: "alert" }, h(Icon, { name: "alert" }),
    div(null, strong(null, sentenceOf(error)), more(known) ? p(null, more(known)) : null,
      requestOf(known) ? details({ class: "soft" }, summary(null, t("error.details")), requestOf(known)) : null),
    retry ? h(Button, { small: true, onClick: retry }, t("again")) : null);
}

/** What the operator finds in the log; of no use for what the reader can mend.
 * @param {ApiError | null} error */
const requestOf = (error) => (error?.requestId && error.status >= 500 ? `${t("error.request")} ${error.requestId}` : "");

/** What is wrong with the fields, as far as it makes a sentence without them.
 * @param {ApiError | null} error */
const told = (error) => (error?.code === "file_too_large" ? t("file.too_large", { name: error.message, size: size(error.details[0]?.count ?? 0), most: size(MAX_FILE) }) : error?.code === "validation_failed" ? [...new Set(error.details.map((one) => said(one.message)))].filter(Boolean).join(" ") : "");

/** What the server adds to an error whose code says too little.
 * @param {ApiError | null} error */
const more = (error) => {
  if (error?.code === "in_use" && error.details.length > 0) return error.details.map((one) => one.count === undefined ? one.message : `${one.count} ${tableName(one.field, one.count).toLowerCase()}`).join(", ");
  return error && VAGUE.has(error.code) && !said(error.message) && errorText(error) !== error.message ? error.message : "";
};
const VAGUE = new Set(["invalid_transition", "forbidden", "in_use", "locked", "quota_exceeded", "limit_reached", "conflict", "unreadable"]);

/** @param {{ items: { href: string, label: Children, count?: number | string | undefined, current?: boolean }[], label: string }} properties */
export const Tabs = ({ items, label }) =>
  nav({ class: "tabs", "aria-label": label }, items.map((item) =>
    a({ key: item.href, href: item.href, "aria-current": item.current ? "page" : undefined }, item.label,
      item.count !== undefined ? span({ class: "count" }, typeof item.count === "number" ? count(item.count) : item.count) : null)));

/** @typedef {{ label: string, icon?: string, run?: () => void, href?: string, danger?: boolean, hidden?: boolean, target?: string }} MenuItem */

/** What a menu keeps free of the edge of the window. */
const EDGE = 12;

/** A button with a menu.
 * @param {{ label: string, name?: string, icon?: string, items: MenuItem[], primary?: boolean, quiet?: boolean, showLabel?: boolean, children?: Children, align?: "left" | "right", class?: string }} properties */
export function Menu({ label, name, icon, items, primary, quiet, showLabel, children, align = "right", class: extra = "" }) {
  const [open, setOpen] = useState(false);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  useOutside(box, open, () => setOpen(false));
  useEffect(() => {
    if (open) /** @type {HTMLElement | null} */ (box.current?.querySelector("[role=menuitem]"))?.focus();
  }, [open]);
  usePopover(box, ".menu-list", open, align);
  const shown = items.filter((item) => !item.hidden);
  if (shown.length === 0) return null;
  // The item that has the focus goes with the list.
  const giveBack = () => /** @type {HTMLElement | null} */ (box.current?.querySelector("button"))?.focus({ preventScroll: true });
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    const all = /** @type {HTMLElement[]} */ ([...(box.current?.querySelectorAll("[role=menuitem]") ?? [])]);
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape" && open) {
      setOpen(false);
      giveBack();
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
    button({ type: "button", class: classes, "aria-haspopup": "menu", "aria-expanded": open, "aria-label": name ?? (showLabel || children ? undefined : label), title: showLabel || children ? undefined : label, onClick: () => setOpen(!open) },
      icon ? h(Icon, { name: icon }) : null, children ?? (showLabel ? span(null, label) : null), showLabel ? h(Icon, { name: "down", class: "caret" }) : null),
    open ? ul({ class: "menu-list", popover: "manual", role: "menu", "aria-label": label }, shown.map((item) =>
      li({ key: item.label, role: "none" }, item.href
        ? a({ role: "menuitem", tabIndex: -1, href: item.href, target: item.target, onClick: () => setOpen(false) }, item.icon ? h(Icon, { name: item.icon }) : null, item.label)
        : button({ role: "menuitem", tabIndex: -1, type: "button", class: item.danger ? "danger" : "", onClick: () => { setOpen(false); giveBack(); item.run?.(); } },
          item.icon ? h(Icon, { name: item.icon }) : null, span(null, item.label))))) : null);
}

/** Shows the list of a box over everything, beside its button and within the window: a card would cut it off.
 * @param {{ current: HTMLElement | null }} box @param {string} which @param {boolean} open @param {"left" | "right"} align @param {() => Element | null | undefined} [beside] */
export function usePopover(box, which, open, align, beside) {
  useLayoutEffect(() => {
    const list = /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector(which));
    if (!open || !list) return;
    list.showPopover?.();
    const put = () => {
      const button = (beside?.() ?? box.current)?.getBoundingClientRect();
      if (!button) return;
      list.style.maxHeight = "";
      const { width, height } = list.getBoundingClientRect();
      const [above, below] = [button.top - EDGE, innerHeight - button.bottom - EDGE];
      const upward = height > below && above > below;
      const most = Math.min(height, upward ? above : below);
      const left = align === "right" ? button.right - width : button.left;
      Object.assign(list.style, { maxHeight: height > most ? `${most}px` : "", top: `${upward ? button.top - 4 - most : button.bottom + 4}px`, left: `${Math.max(EDGE, Math.min(left, innerWidth - EDGE - width))}px` });
    };
    put();
    const sized = new ResizeObserver(put);
    sized.observe(list);
    const scrolled = (/** @type {Event} */ event) => { if (!(event.target instanceof Node && list.contains(event.target))) put(); };
    addEventListener("scroll", scrolled, true);
    addEventListener("resize", put);
    return () => { sized.disconnect(); removeEventListener("scroll", scrolled, true); removeEventListener("resize", put); };
  }, [open]);
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

/** @typedef {{ id: number, text: string, error: boolean, lost?: boolean, undo?: () => void, detail?: string, request?: string, icon?: string, link?: { href: string, label: string }, ask?: { label: string, run: () => void } }} Toast */
const toasts = signal(/** @type {Toast[]} */ ([]));
let lastToast = 0;
const SHOWN = 6000;

/** Says that something is done, for six seconds.
 * @param {string} text @param {{ undo?: () => void, error?: boolean, lost?: boolean, stays?: boolean, detail?: string, request?: string, icon?: string, link?: { href: string, label: string }, ask?: { label: string, run: () => void } }} [options] `ask` is something to add. */
export function say(text, options = {}) {
  const id = ++lastToast;
  // An error stays until somebody has read it; the same one is said once.
  const before = toasts.value.filter((one) => !(one.error && options.error && one.text === text && one.detail === options.detail));
  const done = before.filter((one) => !one.error).slice(-3);
  toasts.value = [...before.filter((one) => one.error || done.includes(one)), { id, text, error: options.error ?? false, lost: options.lost, undo: options.undo, detail: options.detail, request: options.request, icon: options.icon, link: options.link, ask: options.ask }];
  // Whoever is about to use it has the time for it.
  const end = () => void (document.getElementById(`toast-${id}`)?.matches(":hover, :focus-within") ? setTimeout(end, SHOWN) : unsay(id));
  if (!options.error && !options.stays) setTimeout(end, options.ask ? 2 * SHOWN : SHOWN);
  return () => unsay(id);
}

/** Says that a record is saved, and what the server warns of, until it is closed.
 * @param {import("./api.js").Answer | null} answer @param {string} [text] @param {{ href: string, label: string }} [link] */
export function saySaved(answer, text = t("saved"), link) {
  const warnings = /** @type {string[]} */ (answer?.meta?.warnings ?? []);
  say(text, { stays: warnings.length > 0, detail: warnings.map((one) => said(one) || one).join(" · "), link });
}

/** Says what went wrong, until it is closed.
 * @param {unknown} error @param {{ href: string, label: string }} [link] */
export function sayError(error, link) {
  const known = error instanceof ApiError ? error : null;
  say(sentenceOf(error), { error: true, lost: known?.status === 0, detail: more(known), request: requestOf(known), link });
}

/** The page where something is saved now. Whoever has gone to another one when that ends, stays there. */
export function savedHere() {
  const { path, query } = place.value;
  const form = query ? `${path}?${query}` : path;
  const left = () => place.value.path !== path;
  /** @param {string} href */
  const link = (href) => ({ href, label: t("list.open") });
  return {
    left,
    /** Says that it is saved and opens it, or says where it is; returns whether it is open.
     * @param {string} address @param {import("./api.js").Answer | null} answer @param {{ text?: string, replace?: boolean, quiet?: boolean }} [options] `quiet`: opening it says enough. */
    open: (address, answer, { text, replace = true, quiet = false } = {}) => {
      const away = left();
      // Whoever left while it was saved may have typed more before.
      if (away && readDraft(path)) saySaved(answer, t("saved_in_part"), link(form));
      else if (away || !quiet) saySaved(answer, text, away ? link(address) : undefined);
      if (!away) go(address, { replace });
      return !away;
    },
    /** Says what went wrong to whoever no longer sees it, with the way back to what they typed; returns whether it did.
     * @param {unknown} error */
    missed: (error) => {
      if (left()) sayError(error, link(form));
      return left();
    },
  };
}

/** An error in one sentence.
 * @param {unknown} error */
export function sentenceOf(error) {
  const known = error instanceof ApiError ? error : null;
  const first = known?.code === "validation_failed" ? known.details[0] : undefined;
  const sentence = told(known) || errorText(known ?? { message: error instanceof Error ? error.message : String(error) });
  return first && !told(known) ? `${sentence} ${fieldName("", lastOf(first.field))}: ${detailText(first)}` : sentence;
}

// A lost connection is no longer a problem once it is back.
effect(() => {
  if (!reached.value || !toasts.peek().some((toast) => toast.lost)) return;
  const others = toasts.peek().filter((toast) => !toast.lost);
  toasts.value = others;
  say(t("error.reached"));
});

/** @param {number} id */
const unsay = (id) => void (toasts.value = toasts.value.filter((toast) => toast.id !== id));

export const Toasts = () => div({ class: "toasts" }, toasts.value.map((toast) =>
  div({ key: toast.id, id: `toast-${toast.id}`, class: ["toast", toast.error && "bad", toast.ask && "asks"].filter(Boolean).join(" "), role: toast.error ? "alert" : "status" },
    h(Icon, { name: toast.icon ?? (toast.error ? "alert" : "check") }), div(null, toast.text, toast.detail ? div({ class: "soft" }, toast.detail) : null, toast.request ? details({ class: "soft" }, summary(null, t("error.details")), toast.request) : null),
    toast.link ? a({ class: "link", href: toast.link.href, onClick: () => unsay(toast.id) }, toast.link.label) : null,
    toast.undo ? button({ type: "button", class: "link", onClick: () => { unsay(toast.id); toast.undo?.(); } }, t("undo")) : null,
    toast.ask ? button({ type: "button", class: "link", onClick: () => { unsay(toast.id); toast.ask?.run(); } }, toast.ask.label) : null,
    button({ type: "button", class: "button quiet square small", "aria-label": t("close"), onClick: () => unsay(toast.id) }, h(Icon, { name: "close" })))));

/** Deletes after six seconds in which it can be undone; at once when the page is left. Lists are without it meanwhile.
 * @param {string} text @param {string} id @param {string} path @param {string} [etag] */
export function deleteLater(text, id, path, etag) {
  const back = () => void (gone.value = new Set([...gone.value].filter((one) => one !== id)));
  gone.value = new Set([...gone.value, id]);
  keepDeletion(id, { id, path, etag });
  const close = () => {
    clearTimeout(timer);
    removeEventListener("pagehide", run);
    document.removeEventListener("visibilitychange", hidden);
  };
  const run = () => {
    close();
    unsaid();
    remove(path, { etag }).then(() => keepDeletion(id), (error) => { keepDeletion(id); back(); sayError(error); });
  };
  // A page out of sight may never come back.
  const hidden = () => { if (document.hidden) run(); };
  const timer = setTimeout(run, SHOWN);
  addEventListener("pagehide", run);
  document.addEventListener("visibilitychange", hidden);
  const unsaid = say(text, { undo: () => { close(); keepDeletion(id); back(); say(t("undone")); } });
}

// Icons of 16 by 16, drawn with lines of one and a half.

/** @type {Record<string, string>} */
const SHAPES = {
  home: "M2.5 7 8 2.5 13.5 7v6.5h-4v-4h-3v4h-4z",
  invoices: "M3.5 1.5h9v13l-2-1.2-2 1.2-2-1.2-2 1.2h-1zM6 5h4M6 8h4",
  quotes: "M3 1.5h6.5L13 5v9.5H3zM9.5 1.5V5H13M5.5 8.5h5M5.5 11h3",
  workorders: "M5.5 2.5h-2v12h9v-12h-2M5.5 1.5h5v2.5h-5zM5.5 9l1.8 1.8L10.5 7.5",
  subscriptions: "M13.5 6A6 6 0 0 0 3 4.5L2 6M2 2.5V6h3.5M2.5 10A6 6 0 0 0 13 11.5l1-1.500M14 13.5V10h-3.500",
  products: "M8 1.500 14 4.500v7L8 14.500 2 11.500v-7zM2 4.500l6 3 6-3M8 7.500v7",
  clients: "M6 7.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM1.500 13.500c0-2.500 2-4 4.500-4s4.500 1.500 4.500 4M10.500 2.800a2.500 2.500 0 0 1 0 4.500M12 9.800c1.500.5 2.500 1.800 2.500 3.700",
  suppliers: "M1.500 3.500h8v8h-8zM9.500 6.500h3l2 2.500v2.500h-5M4 13.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM12 13.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3z",
  deals: "M2 2.500h3.500v11H2zM6.300 2.500h3.500v7H6.300zM10.600 2.500H14v9h-3.400z",
  tickets: "M2 3h12v8.500H8L4.500 14v-2.500H2zM5 6h6M5 8.500h4",
  tasks: "M2.500 2.500h11v11h-11zM5 8l2.200 2.200L11.200 6",
  projects: "M1.500 3.500h4.500l1.500 2h7v8h-13z",
  hours: "M8 14.500a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM8 4.500V8l2.500 1.500",
  files: "M4 1.500h5.500L12.500 4.500v10h-8.500zM9.500 1.500v3h3",
  flows: "M9 1.500 3.500 9H8l-1 5.500L12.500 7H8z",
  settings: "M2 4.500h6M12 4.500h2M2 11.500h2M8 11.500h6M10 6.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM6 13.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.800 10.800 14 14",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  down: "M4 6.500 8 10.500 12 6.500",
  up: "M4 9.500 8 5.500 12 9.500",
  left: "M10 3.500 5.500 8 10 12.500",
  right: "M6 3.500 10.500 8 6 12.500",
  first: "M12 3.500 7.500 8 12 12.500M4 3.500v9",
  last: "M4 3.500 8.500 8 4 12.500M12 3.500v9",
  menu: "M2 4.500h12M2 8h12M2 11.500h12",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  filter: "M2 3.500h12M4.500 8h7M6.500 12.500h3",
  columns: "M2 3h12v10H2zM6 3v10M10 3v10",
  bell: "M4 11.500V7a4 4 0 0 1 8 0v4.500l1 1H3zM6.800 14.300h2.400",
  star: "M8 2l1.800 3.900 4.200.500-3.100 2.900.800 4.200L8 11.400l-3.700 2.100.800-4.200L2 6.400l4.200-.500z",
  check: "M3 8.500 6.500 12 13 4.500",
  edit: "M10.500 3 13 5.500 5.500 13H3v-2.500z",
  trash: "M2.500 4h11M6 4V2.500h4V4M4 4l.7 10h6.600L12 4",
  send: "M14 2 2 7l5 2 2 5zM14 2 7 9",
  pay: "M1.500 4h13v8.500h-13zM1.500 7h13M4 10h2.500",
  download: "M8 2v8M4.500 7 8 10.500 11.500 7M2.500 13.500h11",
  upload: "M8 10.500v-8M4.500 5.500 8 2l3.500 3.500M2.500 13.500h11",
  keys: "M1.500 4h13v8.500h-13zM4 6.800h.01M6.700 6.800h.01M9.300 6.800h.01M12 6.800h.01M5 9.800h6",
  person: "M8 7.500a2.800 2.800 0 1 0 0-5.500 2.800 2.800 0 0 0 0 5.500zM2.500 14c0-2.800 2.400-4.500 5.500-4.500s5.500 1.700 5.500 4.500",
  calendar: "M2.500 3.500h11v10h-11zM2.500 6.500h11M5.500 2v3M10.500 2v3",
  mail: "M1.500 3.500h13v9h-13zM1.500 4.500 8 9l6.500-4.500",
  phone: "M3 2.500h3l1 3-1.500 1.200a8 8 0 0 0 3.800 3.800L10.500 9l3 1v3c-6 .8-11.300-4.500-10.500-10.500z",
  link: "M6.500 9.500l3-3M7 4.500 8.500 3a3 3 0 0 1 4.500 4.500L11.500 9M9 11.500 7.500 13A3 3 0 0 1 3 8.500L4.500 7",
  copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
  drag: "M6 4h.01M6 8h.01M6 12h.01M10 4h.01M10 8h.01M10 12h.01",
  alert: "M8 2 14.500 13.500h-13zM8 6.500V9.500M8 11.500h.01",
  out: "M6 2.500H2.500v11H6M7 8h7M11 5l3 3-3 3",
  note: "M2.500 2.500h11v7l-4 4h-7zM9.500 13.500v-4h4",
};

/** @param {{ name: string, class?: string }} properties */
export function Icon({ name, class: extra = "" }) {
  const dots = name === "more" || name === "drag";
  return svg({ class: `icon ${extra}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    path({ d: SHAPES[name] ?? "", fill: "none", stroke: "currentColor", "stroke-width": dots ? 2.2 : 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" }));
}
