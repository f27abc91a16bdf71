// Dialogs: for what cannot be undone, and for short forms.
import { signal } from "@preact/signals";
import { render } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { dropDraft, keepDraft, readDraft } from "./drafts.js";
import { dialog, div, form, h, h2, p } from "./html.js";
import { Button, Problem, Progress, Restored, focusHeading, sayError } from "./parts.js";
import { t } from "./words.js";

/** @typedef {{ close: () => void }} Closing */
/** @typedef {{ id: number, view: any }} Open */

const open = signal(/** @type {Open[]} */ ([]));
let last = 0;

/** Opens a dialog, unless one of its kind is open: a second click must not leave a second dialog behind.
 * @param {(closing: Closing) => import("./html.js").View} draw */
export function openDialog(draw) {
  mount();
  const id = ++last;
  const view = /** @type {any} */ (draw({ close: () => void (open.value = open.value.filter((other) => other.id !== id)) }));
  if (open.value.some((other) => other.view.type === view.type && other.view.props.title === view.props.title)) return;
  open.value = [...open.value, { id, view }];
}

let mounted = false;
function mount() {
  if (mounted) return;
  mounted = true;
  const host = document.createElement("div");
  document.body.append(host);
  render(h(Dialogs, null), host);
}

const Dialogs = () => div(null, open.value.map((one) => div({ key: one.id }, one.view)));

/** @typedef {{ restored: boolean, drop: () => void }} Draft */

/** What is typed in a dialog, kept until it is done or cancelled: closing it, or the page, loses nothing. Passwords and codes are
 * not for here.
 * @template {Record<string, any>} Typed
 * @param {string} name Of the dialog, with the record that it is about. @param {Typed} start What stands there before anybody types.
 * @returns {Draft & { values: Typed, set: (changes: Partial<Typed>) => void }} */
export function useTyped(name, start) {
  const draftName = `dialog ${name}`;
  const [typed, setTyped] = useState(() => /** @type {Partial<Typed>} */ (readDraft(draftName)?.value ?? {}));
  const [restored, setRestored] = useState(() => Object.entries(typed).some(([field, value]) => value !== start[field]));
  const latest = useRef(typed);
  /** @param {Partial<Typed>} next */
  const take = (next) => { latest.current = next; setTyped(next); };
  return {
    values: { ...start, ...typed }, restored,
    set: (changes) => { take({ ...latest.current, ...changes }); keepDraft(draftName, () => latest.current); },
    drop: () => { take({}); setRestored(false); dropDraft(draftName); },
  };
}

/**
 * @param {object} properties
 * @param {string} properties.title
 * @param {string} properties.action The word on the main button.
 * @param {boolean} [properties.danger]
 * @param {boolean} [properties.wide]
 * @param {string} [properties.class]
 * @param {boolean} [properties.calm] Whether no field gets the focus, so that a phone shows no keyboard.
 * @param {import("./html.js").View} [properties.other] A button in the place of "cancel".
 * @param {boolean} [properties.single] Whether there is nothing to cancel.
 * @param {() => void} properties.close
 * @param {() => Promise<unknown>} properties.run Closes the dialog when it succeeds, unless it returns false; an error is shown in it, unless it is null.
 * @param {import("./html.js").Children} [properties.children]
 * @param {boolean} [properties.disabled]
 * @param {Draft} [properties.draft] What is typed in it.
 */
export function Dialog({ title, action, danger, wide, class: extra = "", calm, other, single, close, run, children, disabled, draft }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [round, setRound] = useState(0);
  const opened = useRef(performance.now());
  // Before the browser paints, so that a second click finds the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const shown = box.current;
    shown?.showModal();
    if (!calm) focusFirst(box.current);
    return () => {
      // While it is open, nothing behind it can have the focus.
      shown?.close();
      if (before instanceof HTMLElement && before.isConnected && before !== document.body) before.focus();
      else focusHeading();
    };
  }, []);
  // While it saves, nobody can change, repeat or leave what is being sent. Escape is heard only where the focus is.
  useLayoutEffect(() => {
    if (!busy) return;
    const before = document.activeElement;
    box.current?.focus();
    return () => { if (before instanceof HTMLElement && [box.current, document.body].includes(/** @type {any} */ (document.activeElement))) before.focus(); };
  }, [busy]);
  const submit = async () => {
    if (busy || disabled) return;
    setBusy(true);
    setError(null);
    try {
      if ((await run()) === false) return setBusy(false);
      draft?.drop();
      close();
    } catch (problem) {
      // Whoever closed the dialog meanwhile has to know too.
      if (!box.current && problem) sayError(problem);
      setError(problem);
      setBusy(false);
    }
  };
  const discard = () => { draft?.drop(); setRound(round + 1); requestAnimationFrame(() => focusFirst(box.current)); };
  return dialog({
    ref: box, class: ["dialog", wide && "wide", extra].filter(Boolean).join(" "), "aria-label": title, tabIndex: -1, "aria-busy": busy || undefined,
    // One that another takes the place of is gone already.
    onClose: () => { if (box.current) close(); },
    onCancel: (event) => { if (busy) event.preventDefault(); },
    onKeyDown: (event) => {
      const submits = event.key === "Enter" && (event.ctrlKey || event.metaKey);
      const held = event.repeat && event.key === "Enter" && !(event.target instanceof HTMLTextAreaElement);
      // The keys that opened it do not answer it: nobody has read it yet. Whoever presses others has.
      if (!["Enter", "Control", "Meta"].includes(event.key)) opened.current = -UNREAD;
      const unread = performance.now() - opened.current <= UNREAD;
      const early = unread && event.key === "Enter" && event.target instanceof HTMLButtonElement && event.target.type === "submit";
      if (submits || held || early || (busy && event.key === "Escape")) event.preventDefault();
      if (submits && !event.repeat && !unread) void submit();
    },
  }, h(Progress, { on: busy }), form({ method: "dialog", inert: busy, onSubmit: (event) => { event.preventDefault(); void submit(); } },
    div({ class: "dialog-head" }, h2(null, title), h(Button, { quiet: true, small: true, icon: "close", label: t("close"), onClick: close })),
    // Boxes keep what is typed in them; another key makes them anew.
    div({ class: "dialog-body", key: round }, draft?.restored ? h(Restored, { discard }) : null, error ? h(Problem, { error }) : null, children),
    div({ class: "dialog-foot" }, other ?? (single ? null : h(Button, { onClick: () => { draft?.drop(); close(); } }, t("cancel"))), h(Button, { type: "submit", primary: !danger, danger, busy, disabled }, action))));
}

const UNREAD = 500;

/** @param {HTMLElement | null} shown */
const focusFirst = (shown) => /** @type {HTMLElement | null | undefined} */ (shown?.querySelector(".dialog-body :is(input, select, textarea):not([type=file], [tabindex=\"-1\"])") ?? shown?.querySelector("[type=submit]"))?.focus();

/** Asks before something that cannot be undone, and says what will happen.
 * @param {{ title: string, text: import("./html.js").Children, action: string, danger?: boolean, run: () => Promise<unknown> }} options */
export function confirm(options) {
  openDialog(({ close }) => h(Dialog, { title: options.title, action: options.action, danger: options.danger, close, run: options.run }, p(null, options.text)));
}
