// The overview of the shortcuts that work on this page.
import { Dialog, openDialog } from "./dialog.js";
import { dd, dl, dt, div, h, kbd } from "./html.js";
import { allShortcuts, capsOf } from "./keys.js";
import { t } from "./words.js";

export function openHelp() {
  const shortcuts = allShortcuts();
  openDialog(({ close }) => h(Dialog, { title: t("help.title"), action: t("close"), single: true, close, run: async () => {} },
    dl({ class: "shortcuts" }, shortcuts.map((shortcut) => div({ key: shortcut.key }, dt(null, capsOf(shortcut.key).map((one, place) => kbd({ key: place }, one))), dd(null, shortcut.label))))));
}
