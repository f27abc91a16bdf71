// Views of a list: saving the filters and the order under a name, renaming and removing.
import { useState } from "preact/hooks";
import { Dialog, openDialog, useTyped } from "./dialog.js";
import { choose } from "./drafts.js";
import { TextBox } from "./field.js";
import { div, h, label, li, p, span, ul } from "./html.js";
import { viewQuery, viewsOf } from "./list.js";
import { Button, say } from "./parts.js";
import { go } from "./router.js";
import { t } from "./words.js";

const MAX_NAME = 40;

/** @param {import("./schema.js").Table} table */
export const openViews = (table) => openDialog(({ close }) => h(Views, { table, close }));

/** @param {{ table: import("./schema.js").Table, close: () => void }} properties */
function Views({ table, close }) {
  const query = viewQuery();
  const [views, setViews] = useState(viewsOf(table));
  const now = views.find((view) => view.query === query);
  const draft = useTyped(`view ${table.key} ${query}`, { name: now?.name ?? "" });
  const { name } = draft.values;
  /** @param {{ name: string, query: string }[]} next */
  const keep = (next) => { setViews(next); choose(`views.${table.key}`, next); };
  const run = async () => {
    const view = { name: name.trim(), query };
    keep(now ? views.map((one) => (one === now ? view : one)) : [...views, view]);
    say(t("saved"));
  };
  return h(Dialog, { title: t("views.title"), action: now ? t("views.rename") : t("views.save"), close, run, draft, disabled: !name.trim() || !query },
    query ? div({ class: "field" }, label({ for: "view-name" }, t("views.name")), h(TextBox, { id: "view-name", value: name, length: MAX_NAME, placeholder: t("views.example"), onChange: (value) => draft.set({ name: value }) }), p({ class: "help" }, t("views.help"), " ", t("views.length", { n: MAX_NAME }))) : p(null, t("views.nothing")),
    views.length === 0 ? null : ul({ class: "lines" }, views.map((view) => li({ key: view.name },
      span(null, view.name), span({ class: "line-end" }, h(Button, { small: true, onClick: () => { close(); go(`${table.address}?${view.query}`); } }, t("list.open")), h(Button, { small: true, quiet: true, icon: "trash", label: `${t("delete")}: ${view.name}`, onClick: () => keep(views.filter((one) => one !== view)) }))))));
}
