// Two people changed the same record: field by field, mine or theirs.
import { useState } from "preact/hooks";
import { Dialog, openDialog } from "./dialog.js";
import { div, fieldset, h, input, label, legend, p, span } from "./html.js";
import { moment } from "./format.js";
import { fieldOf, valueOf } from "./schema.js";
import { fieldName, t } from "./words.js";
import { Value } from "./value.js";

/** @typedef {import("./api.js").Item} Item */
/** @typedef {{ table: import("./schema.js").Table, mine: Item, base: Item, theirs: import("./api.js").Answer,
 *   done: (merged: Item, newer: import("./api.js").Answer) => void }} Conflict */

/** @param {Conflict} conflict */
export function openConflict(conflict) {
  const { base, theirs, mine, done } = conflict;
  const both = Object.keys(mine).filter((name) => JSON.stringify(valueOf(base, name) ?? "") !== JSON.stringify(valueOf(theirs.data, name) ?? ""));
  // Fields that only one of the two changed need no choice.
  if (both.length === 0) done(mine, theirs);
  else openDialog(({ close }) => h(Choices, { conflict, both, close }));
}

/** @param {{ conflict: Conflict, both: string[], close: () => void }} properties */
function Choices({ conflict, both, close }) {
  const { table, mine, theirs, done } = conflict;
  const [taken, setTaken] = useState(/** @type {Record<string, boolean>} */ ({}));
  const at = theirs.data.meta?.updated_at ?? theirs.data.updated_at;
  const run = async () => {
    const merged = Object.fromEntries(Object.entries(mine).map(([name, value]) => [name, taken[name] ? valueOf(theirs.data, name) ?? "" : value ?? ""]));
    done(merged, theirs);
  };
  return h(Dialog, { title: t("conflict.title"), action: t("save"), close, run },
    p(null, t("conflict.text", { at: moment(at) })),
    both.map((name) => {
      const field = fieldOf(table, name) ?? { name, kind: "text" };
      return fieldset({ key: name, class: "field choice" }, legend(null, fieldName(table.key, name)), div({ class: "radios column" }, [false, true].map((other) =>
        label({ key: String(other) }, input({ type: "radio", name: `conflict-${name}`, checked: Boolean(taken[name]) === other, onChange: () => setTaken({ ...taken, [name]: other }) }),
          span(null, other ? t("conflict.theirs") : t("conflict.mine"), ": ", shown(table.key, field, other ? valueOf(theirs.data, name) : mine[name]))))));
    }));
}

/** @param {string} table @param {import("./schema.js").Field} field @param {any} value */
const shown = (table, field, value) => (Array.isArray(value) ? t("conflict.n_rows", { n: value.length }) : h(Value, { table, field, value, plain: true }));
