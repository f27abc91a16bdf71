// What is done with several records of a list: one request a record, and one message about all of them.
import { useState } from "preact/hooks";
import { post, reloadAll, remove } from "./api.js";
import { Dialog, openDialog } from "./dialog.js";
import { h, p } from "./html.js";
import { say, sentenceOf } from "./parts.js";
import { itemPath } from "./schema.js";
import { t, tableName } from "./words.js";

/** @typedef {{ id: string, name: string }} Named */

const MAX_REASONS = 5;

/** @param {import("./schema.js").Table} table @param {string} action @param {Named[]} records @param {() => void} done */
export const openSeveral = (table, action, records, done) => openDialog(({ close }) => h(Several, { table, action, records, done, close }));

/** @param {{ table: import("./schema.js").Table, action: string, records: Named[], done: () => void, close: () => void }} properties */
function Several({ table, action, records, done, close }) {
  const [at, setAt] = useState(0);
  const n = records.length;
  const deletes = action === "delete";
  const run = async () => {
    /** @type {string[]} */
    const failed = [];
    for (const [place, { id, name }] of records.entries()) {
      setAt(place + 1);
      const path = itemPath(table, id);
      try {
        await (deletes ? remove(path, { keep: true }) : post(`${path}/${action}`, undefined, { keep: true }));
      } catch (error) {
        const why = sentenceOf(error);
        failed.push(why.includes(name) ? why : `${name}: ${why}`);
      }
    }
    reloadAll();
    done();
    const made = n - failed.length;
    const text = t(deletes ? "several.deleted" : "several.completed", { n: made });
    if (failed.length === 0) return say(text);
    const rest = failed.length - MAX_REASONS;
    say(`${made > 0 ? `${text} ` : ""}${t("several.failed", { n: failed.length })}`, { error: true, detail: [...failed.slice(0, MAX_REASONS), ...(rest > 0 ? [t("several.more", { n: rest })] : [])].join("\n") });
  };
  const what = `${n} ${tableName(table.key, n).toLowerCase()}`;
  return h(Dialog, { title: t(deletes ? "several.delete_title" : "several.complete_title", { what }), action: t(deletes ? "several.delete" : "several.complete"), danger: deletes, close, run },
    p({ role: "status" }, at > 0 ? t("several.busy", { at, n }) : t(deletes ? "delete_one.text" : "several.complete_text")));
}
