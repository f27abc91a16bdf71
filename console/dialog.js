// Dialogs: for what cannot be undone, and for short forms.
import { signal } from "@preact/signals";
import { render } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { dialog, div, form, h, h2, p } from "./html.js";
import { Button, Problem, Progress, focusHeading } from "./parts.js";
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
 */
export function Dialog({ title, action, danger, wide, class: extra = "", calm, other, single, close, run, children, disabled }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  // Before the browser paints, so that a second click finds the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const shown = box.current;
    shown?.showModal();
    if (!calm) /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector(".dialog-body :is(input, select, textarea):not([type=file], [tabindex=\"-1\"])") ?? box.current?.querySelector("[type=submit]"))?.focus();
    return () => {
      // While it is open, nothing behind it can have the focus.
      shown?.close();
      if (before instanceof HTMLElement && before.isConnected && before !== document.body) before.focus();
      else focusHeading();
    };
  }, []);
  const submit = async () => {
    if (busy || disabled) return;
    setBusy(true);
    setError(null);
    try {
      if ((await run()) === false) setBusy(false);
      else close();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return dialog({
    ref: box, class: ["dialog", wide && "wide", extra].filter(Boolean).join(" "), "aria-label": title,
    // One that another takes the place of is gone already.
    onClose: () => { if (box.current) close(); },
    onKeyDown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); void submit(); } },
  }, h(Progress, { on: busy }), form({ method: "dialog", onSubmit: (event) => { event.preventDefault(); void submit(); } },
    div({ class: "dialog-head" }, h2(null, title), h(Button, { quiet: true, small: true, icon: "close", label: t("close"), onClick: close })),
    div({ class: "dialog-body" }, error ? h(Problem, { error }) : null, children),
    div({ class: "dialog-foot" }, other ?? (single ? null : h(Button, { onClick: close }, t("cancel"))), h(Button, { type: "submit", primary: !danger, danger, busy, disabled }, action))));
}

/** Asks before something that cannot be undone, and says what will happen.
 * @param {{ title: string, text: import("./html.js").Children, action: string, danger?: boolean, run: () => Promise<unknown> }} options */
export function confirm(options) {
  openDialog(({ close }) => h(Dialog, { title: options.title, action: options.action, danger: options.danger, close, run: options.run }, p(null, options.text)));
}
