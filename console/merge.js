// Deleting a client or a supplier, and merging it with a duplicate: both cannot be undone.
import { useMemo, useState } from "preact/hooks";
import { formKey, post, remove } from "./api.js";
import { LinkBox } from "./combobox.js";
import { Dialog, confirm, openDialog } from "./dialog.js";
import { div, h, label, p } from "./html.js";
import { say } from "./parts.js";
import { go } from "./router.js";
import { can, itemPath, may, titleOf } from "./schema.js";
import { t, tableName, word } from "./words.js";

/** @typedef {import("./schema.js").Table} Table */
/** @typedef {import("./api.js").Item} Item */

/** The items of the menu of a record that can have duplicates.
 * @param {Table} table @param {Item} item @param {string} etag @returns {import("./parts.js").MenuItem[]} */
export function mergeMenu(table, item, etag) {
  const action = (table.actions ?? []).find((one) => one.name === "merge");
  const name = titleOf(table, item);
  return [
    { label: t("merge"), icon: "link", hidden: !action || !may(action.scope), run: () => openDialog(({ close }) => h(Merge, { table, item, close })) },
    { label: t("delete"), icon: "trash", danger: true, hidden: !can(table, "delete"), run: () => confirm({
      title: t("merge.delete_title", { name }), text: word([`merge.delete.${table.key}`], ""), action: t("delete"), danger: true,
      run: async () => { await remove(itemPath(table, item.id), { etag, keep: true }); go(table.address); say(t("deleted", { name })); },
    }) },
  ];
}

/** @param {{ table: Table, item: Item, close: () => void }} properties */
function Merge({ table, item, close }) {
  const [chosen, setChosen] = useState(/** @type {Item | null} */ (null));
  const key = useMemo(formKey, []);
  const name = titleOf(table, item);
  const run = async () => {
    await post(`${itemPath(table, item.id)}/merge`, { duplicate_id: chosen?.id }, { key });
    say(t("merge.done", { name }));
  };
  const query = item.type ? `contact_type=${item.type}` : "";
  return h(Dialog, { title: t("merge.title", { name }), action: t("merge.action"), danger: true, close, run, disabled: !chosen || chosen.id === item.id },
    div({ class: "field" }, label({ for: "duplicate" }, t("merge.duplicate")),
      h(LinkBox, { id: "duplicate", table: table.key, query, value: chosen?.id ?? "", onChange: (_, found) => setChosen(found), placeholder: tableName(table.key, 1) })),
    p(null, chosen && chosen.id !== item.id ? word([`merge.text.${table.key}`], "", { duplicate: titleOf(table, chosen), name }) : t("merge.choose")));
}
