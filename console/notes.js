// Notes about a client, an invoice, a project or a deal.
import { useMemo, useState } from "preact/hooks";
import { formKey, post, useLoad } from "./api.js";
import { useDraft } from "./drafts.js";
import { div, form, h, li, textarea, ul } from "./html.js";
import { Button, Card, Moment, deleteLater, say, sayError } from "./parts.js";
import { can, tables } from "./schema.js";
import { t, tableName } from "./words.js";

/** @typedef {import("./api.js").Item} Item */
const SHOWN = 20;

/** @param {{ about: "client_id" | "invoice_id" | "project_id" | "deal_id", id: string }} properties */
export function Notes({ about, id }) {
  const table = tables.notes;
  const loaded = useLoad(table && can(table, "list") ? `/v1/notes?${about}=${id}&per_page=${SHOWN}` : null, { typing: true });
  if (!table || !loaded.answer) return null;
  const edits = can(table, "create");
  const notes = /** @type {Item[]} */ (loaded.answer.data);
  if (notes.length === 0 && !edits) return null;
  /** @param {Item} note */
  const drop = (note) => deleteLater(t("deleted", { name: tableName("notes", 1) }), note.id, `/v1/notes/${note.id}`);
  return h(Card, { title: tableName("notes"), class: "notes" }, edits ? h(NewNote, { about, id }) : null,
    notes.length > 0 ? ul({ class: "lines" }, notes.map((note) => li({ key: note.id }, div(null, div({ class: "note-body" }, note.body), div({ class: "soft" }, h(Moment, { at: note.created_at }))),
      edits ? h(Button, { small: true, quiet: true, icon: "trash", label: t("delete"), onClick: () => drop(note) }) : null))) : null);
}

/** @param {{ about: string, id: string }} properties */
function NewNote({ about, id }) {
  const draft = useDraft(`note ${about} ${id}`, "");
  const text = draft.value;
  const [busy, setBusy] = useState(false);
  const [round, setRound] = useState(0);
  const key = useMemo(formKey, [round]);
  const save = async () => {
    if (busy || !text.trim()) return;
    setBusy(true);
    try {
      await post("/v1/notes", { body: text.trim(), [about]: id }, { key });
      draft.sent(text);
      setRound(round + 1);
      say(t("saved"));
    } catch (error) { sayError(error); } finally { setBusy(false); }
  };
  return form({ class: "new-note", onSubmit: (event) => { event.preventDefault(); void save(); } },
    textarea({ rows: 2, value: text, "aria-label": t("notes.new"), placeholder: t("notes.new"), onInput: (event) => draft.set(event.currentTarget.value),
      onKeyDown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); void save(); } } }),
    text.trim() ? h(Button, { type: "submit", small: true, busy }, t("ticket.add_note")) : null);
}
