// Two people changed the same record: field by field, mine or theirs.
import { useState } from "preact/hooks";
import { useLoad } from "./api.js";
import { actorName } from "./change.js";
import { Dialog, openDialog } from "./dialog.js";
import { div, fieldset, h, input, label, legend, p, span } from "./html.js";
import { moment } from "./format.js";
import { fieldOf, itemPath, valueOf } from "./schema.js";
import { fieldName, t, word } from "./words.js";
import { Value } from "./value.js";

/** @typedef {import("./api.js").Item} Item */
/** @typedef {{ table: import("./schema.js").Table, mine: Item, base: Item, theirs: import("./api.js").Answer,
 *   done: (merged: Item, newer: import("./api.js").Answer) => void }} Conflict */

/** Who changed a record last, and when.
 * @param {import("./schema.js").Table} table @param {Item} item */
function useLastChange(table, item) {
  const last = useLoad(`${itemPath(table, item.id)}/history?per_page=1`, { typing: true }).answer?.data[0];
  return { who: last ? actorName(last) : t("actor.unknown"), at: moment(last?.timestamp ?? item.meta?.updated_at ?? item.updated_at) };
}

/** Says that somebody else saved what is being edited. What is being typed stays.
 * @param {{ table: import("./schema.js").Table, item: Item }} properties */
export const ChangedNotice = ({ table, item }) => div({ class: "notice", role: "status" }, span(null, t("conflict.notice", useLastChange(table, item))));

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
  const last = useLastChange(table, theirs.data);
  const run = async () => {
    const merged = Object.fromEntries(Object.entries(mine).map(([name, value]) => [name, taken[name] ? valueOf(theirs.data, name) ?? "" : value ?? ""]));
    done(merged, theirs);
  };
  return h(Dialog, { title: t("conflict.title"), action: t("save"), close, run },
    p(null, t("conflict.text", last)),
    both.map((name) => {
      const field = fieldOf(table, name) ?? { name, kind: "text" };
      return fieldset({ key: name, class: "field choice" }, legend(null, fieldName(table.key, name)), div({ class: "radios column" }, [false, true].map((other) =>
        label({ key: String(other) }, input({ type: "radio", name: `conflict-${name}`, checked: Boolean(taken[name]) === other, onChange: () => setTaken({ ...taken, [name]: other }) }),
          span(null, other ? t("conflict.theirs") : t("conflict.mine"), ": ", shown(table.key, field, other ? valueOf(theirs.data, name) : mine[name]))))));
    }));
}

/** @param {string} table @param {import("./schema.js").Field} field @param {any} value */
const shown = (table, field, value) => (Array.isArray(value) ? listed(table, field.name, value) : h(Value, { table, field, value, plain: true }));

/** Rows by their names, steps by what they do.
 * @param {string} table @param {string} field @param {any[]} rows */
function listed(table, field, rows) {
  const names = rows.map((row) => (field === "steps" ? word([`step.${row.type}`], row.type) : (row.name ?? row.title ?? row.field))).filter(Boolean);
  const counted = table === "flows" ? t(field === "steps" ? "conflict.n_steps" : "conflict.n_conditions", { n: rows.length }) : t("conflict.n_rows", { n: rows.length });
  return names.length > 0 ? `${counted} (${names.slice(0, MAX_NAMES).join(", ")}${names.length > MAX_NAMES ? ", …" : ""})` : counted;
}

const MAX_NAMES = 5;
