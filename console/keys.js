// Single keys work outside fields only and can be switched off. A screen registers its keys while it is shown.
import { useLayoutEffect } from "preact/hooks";
import { chosen } from "./drafts.js";

/** @typedef {{ key: string, label: string, run: (event: KeyboardEvent) => void, always?: boolean }} Shortcut */

/** @type {Set<{ current: Shortcut[] }>} */
const registered = new Set();

/** Registers shortcuts while the component is shown. `key` is "j", "Ctrl+s" or "g i" (two keys in a row).
 * @param {Shortcut[]} shortcuts */
export function useKeys(shortcuts) {
  // Before the browser paints: a key never acts on what was shown before.
  useLayoutEffect(() => {
    const own = { current: shortcuts };
    registered.add(own);
    return () => void registered.delete(own);
  });
}

/** All shortcuts that work now, for the overview. */
export const allShortcuts = () => [...registered].flatMap((own) => own.current).filter((shortcut) => shortcut.label);

/** The caps of a shortcut.
 * @param {string} key @returns {string[]} */
export const capsOf = (key) => key.split(/[ +]/).map((one) => ARROWS[one] ?? (one.length === 1 ? one.toUpperCase() : one));
/** @type {Record<string, string>} */
const ARROWS = { ArrowRight: "→", ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓", Enter: "↵", Backspace: "⌫" };

let before = "";
let beforeAt = 0;

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const pressed = nameOf(event);
    const typing = isField(event.target);
    const modal = document.querySelector("dialog[open]");
    const pair = Date.now() - beforeAt < 1200 ? `${before} ${pressed}` : "";
    const shortcuts = [...registered].reverse().flatMap((own) => own.current);
    const allowed = shortcuts.filter((shortcut) => shortcut.key.startsWith("Ctrl+") || shortcut.key.startsWith("Alt+") || (!typing && chosen("single_keys", true)));
    const open = modal ? allowed.filter((shortcut) => shortcut.always) : allowed;
    const found = open.find((shortcut) => shortcut.key === pair) ?? open.find((shortcut) => shortcut.key === pressed);
    before = pressed;
    beforeAt = Date.now();
    // Enter presses the button that has the focus.
    if (!found || (pressed === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary"))) return;
    event.preventDefault();
    before = "";
    found.run(event);
  });
}

/** @param {KeyboardEvent} event */
function nameOf(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const shift = event.shiftKey && event.key.length > 1 ? "Shift+" : "";
  return (event.ctrlKey || event.metaKey ? "Ctrl+" : "") + (event.altKey ? "Alt+" : "") + shift + key;
}

/** @param {EventTarget | null} target */
export function isField(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    !(target instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(target.type));
}
