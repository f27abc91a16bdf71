// The form of a ticket: who asks, what about, and who takes care of it. What the client said becomes the first message of a
// new one.
import { useMemo, useRef, useState } from "preact/hooks";
import { ApiError, formKey, get, patch, post, useLoad } from "../api.js";
import { LinkBox } from "../combobox.js";
import { openConflict } from "../conflict.js";
import { Missing } from "../missing.js";
import { changedSince, dropDraft, keepDraft, readDraft, saveTyped, typedSince } from "../drafts.js";
import { ChoiceBox, FieldRow, TextBox } from "../field.js";
import { ErrorList, changes, editable, errorsByField } from "../form.js";
import { Others } from "../here.js";
import { a, div, form, h, label, p, span } from "../html.js";
import { useKeys } from "../keys.js";
import { Button, Card, Head, Restored, Skeleton, savedHere } from "../parts.js";
import { place } from "../router.js";
import { itemPath, may, valueOf } from "../schema.js";
import { linked } from "../value.js";
import { choiceName, fieldName, t, tableName, word } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */
const FIELDS = ["client_id", "client_name", "client_email", "subject", "priority", "status", "assignee_id", "project_id"];

/** @param {{ table: Table, id: string | null }} properties */
export function TicketForm({ table, id }) {
  const loaded = useLoad(id ? itemPath(table, id) : null, { typing: true });
  if (id && loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (id && !loaded.answer) return div({ class: "page narrow" }, h(Skeleton, { rows: 8 }));
  return h(Editing, { key: id ?? "new", table, item: loaded.answer?.data ?? null, etag: loaded.answer?.etag ?? "" });
}

/** @param {{ table: Table, item: Item | null, etag: string }} properties */
function Editing({ table, item, etag }) {
  const draftName = place.value.path;
  const base = useRef({ item, etag });
  // What the client said, as far as it is sent.
  const said = useRef("");
  const start = useMemo(() => beginning(table, item, place.value.query), []);
  const kept = useMemo(() => readDraft(draftName), []);
  const [values, setValues] = useState(/** @type {Item} */ ({ ...start, ...kept?.value }));
  const latest = useRef(values);
  latest.current = values;
  const [restored, setRestored] = useState(kept !== null);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const [key, messageKey] = useMemo(() => [formKey(), formKey()], []);
  const statuses = /** @type {Item[]} */ (useLoad("/v1/ticket-statuses").answer?.data ?? []).filter((one) => one.active !== false);
  const users = /** @type {Item[]} */ (useLoad(may("users.read") ? "/v1/users?status=active&per_page=100" : null).answer?.data ?? []);
  const client = values.client_id ? linked("clients", values.client_id).value : null;
  const errors = error instanceof ApiError ? errorsByField(error) : {};
  const status = values.status ?? statuses[0]?.name ?? "";
  /** @param {Item} changes */
  const set = (changes) => {
    latest.current = { ...latest.current, ...changes };
    setValues(latest.current);
    keepDraft(draftName, () => changedSince(beginning(table, base.current.item, ""), latest.current));
  };
  const fields = table.fields.filter((field) => (item ? field.patch : field.create) && editable(field));
  /** Sends the ticket, or what was changed in it, and what the client said of a new one. */
  const send = async () => {
    const [now, { item: made, etag: version }] = [latest.current, base.current];
    const body = made ? changes(fields, made, now) : Object.fromEntries(fields.map((field) => field.name).filter((name) => now[name]).map((name) => [name, now[name]]));
    const answer = !made ? await post(table.path, body, { key }) : Object.keys(body).length > 0 ? await patch(itemPath(table, made.id), body, { etag: version }) : null;
    const id = made?.id ?? answer?.data.id;
    if (!made) await continueAfter({ id });
    const ticket = base.current.item ?? {};
    const words = latest.current.message ?? "";
    const message = item ? "" : typedSince(said.current, words);
    if (message.trim()) {
      await post(`/v1/tickets/${id}/messages/inbound`, { body: message, author_name: ticket.client_name || (client ? [client.firstname, client.lastname].filter(Boolean).join(" ") || client.company_name : ""), author_email: ticket.client_email || client?.email || "" }, { key: messageKey });
      said.current = words;
      // A message of the client reopens a ticket; the chosen status stays.
      if (now.status && ["waiting", "closed"].includes(statuses.find((one) => one.name === now.status)?.role)) await patch(itemPath(table, id), { status: now.status });
    }
    return { answer, id };
  };
  /** @param {{ id: string }} saved */
  const continueAfter = async ({ id }) => {
    const saved = await get(itemPath(table, id));
    base.current = { item: saved.data, etag: saved.etag };
  };
  /** Somebody else's changes are shown first.
   * @param {Item} before */
  const merge = async (before) => {
    const theirs = await get(itemPath(table, before.id));
    openConflict({ table, mine: changes(fields, before, latest.current), base: before, theirs, done: (merged, newer) => {
      base.current = { item: newer.data, etag: newer.etag };
      latest.current = { ...latest.current, ...Object.fromEntries(table.fields.map((field) => [field.name, valueOf(newer.data, field.name) ?? ""])), ...merged };
      setValues(latest.current);
      // After this attempt, which is still busy.
      setTimeout(() => void saveLatest.current());
    } });
  };
  const save = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    const here = savedHere();
    try {
      const { answer, id } = await saveTyped({ draft: draftName, typed: () => latest.current, left: here.left, send, next: continueAfter });
      here.open(`${table.address}/${id}`, answer);
    } catch (problem) {
      const before = base.current.item;
      if (before && problem instanceof ApiError && problem.status === 412) return await merge(before);
      if (here.missed(problem)) return;
      setError(problem);
      requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true], .error-list a"))?.focus());
    } finally {
      setBusy(false);
    }
  };
  const saveLatest = useRef(save);
  saveLatest.current = save;
  useKeys([{ key: "Ctrl+s", label: t("save"), run: () => void save(), always: true }]);
  /** @param {string} name @param {string} [text] */
  const row = (name, text) => fields.filter((field) => field.name === name).map((field) => h(FieldRow, { key: name, table: table.key, field, name: text, value: values[name], error: errors[name], onChange: (value) => set({ [name]: value }) }));
  /** @param {string} typed */
  const newClient = (typed) => void import("./quick_client.js").then(({ openQuickClient }) => openQuickClient(typed, (made) => set({ client_id: made.id })));
  return form({ class: "page narrow", noValidate: true, onSubmit: (event) => { event.preventDefault(); void save(); } },
    h(Head, { title: item ? item.subject : word(["new.tickets"], ""), over: [a({ key: "list", href: table.address }, tableName("tickets")), item ? ` · ${item.number}` : ""], beside: item ? h(Others, { address: `${table.address}/${item.id}` }) : null }),
    restored ? h(Restored, { discard: () => { setValues(start); setRestored(false); dropDraft(draftName); } }) : null,
    error ? h(ErrorList, { table, error, fields }) : null,
    h(Card, { title: t("ticket.who") },
      div({ class: "fields" }, div({ class: "field wide" }, label({ for: "f-client_id" }, t("field.client_id")), h(LinkBox, { id: "f-client_id", table: "clients", value: values.client_id ?? "", onChange: (value) => set({ client_id: value }), onNew: may("relations.write") ? newClient : undefined }),
        client ? p({ class: "help" }, [client.email, client.phone].filter(Boolean).join(" · ") || t("ticket.no_email")) : null),
      values.client_id && !values.client_name && !values.client_email ? null : [div({ key: "or", class: "field wide soft" }, t(values.client_id ? "ticket.contact" : "ticket.or_sender")),
        row("client_name", t("ticket.name")), row("client_email")])),
    h(Card, { title: t("group.ticket") },
      div({ class: "fields" }, div({ class: "field wide" }, label({ for: "f-subject" }, t("field.subject"), span({ class: "required", "aria-hidden": "true" }, " *")), h(TextBox, { id: "f-subject", value: values.subject, length: 998, invalid: Boolean(errors.subject), describedBy: errors.subject ? "f-subject-error" : undefined, onChange: (value) => set({ subject: value }) }), errors.subject ? p({ class: "wrong", id: "f-subject-error" }, errors.subject) : null),
        item ? null : div({ class: "field wide" }, label({ for: "f-message" }, t("send.message")), h(TextBox, { id: "f-message", value: values.message, long: true, describedBy: "f-message-help", onChange: (value) => set({ message: value }) }), p({ class: "help", id: "f-message-help" }, t("ticket.message_help"))),
        row("priority"),
        div({ class: "field" }, label({ for: "f-status" }, t("field.status")), h(ChoiceBox, { id: "f-status", value: status, onChange: (value) => set({ status: value }), options: statuses.map((one) => /** @type {[string, string]} */ ([one.name, choiceName("tickets", "status", one.name)])) })),
        may("users.read") ? div({ class: "field" }, label({ for: "f-assignee_id" }, fieldName("tickets", "assignee_id")), h(ChoiceBox, { id: "f-assignee_id", value: values.assignee_id ?? "", onChange: (value) => set({ assignee_id: value }), options: [["", t("ticket.nobody")], ...users.map((user) => /** @type {[string, string]} */ ([user.id, user.name || user.email]))] })) : null,
        row("project_id"), fields.filter((field) => !FIELDS.includes(field.name)).map((field) => row(field.name)))),
    div({ class: "form-foot" }, h(Button, { href: item ? `${table.address}/${item.id}` : table.address, onClick: () => dropDraft(draftName) }, t("cancel")), h(Button, { type: "submit", primary: true, busy }, t("save"))));
}

/** @param {Table} table @param {Item | null} item @param {string} query @returns {Item} */
const beginning = (table, item, query) => (item ? Object.fromEntries(table.fields.map((field) => [field.name, valueOf(item, field.name) ?? ""])) : { priority: "normal", ...Object.fromEntries(new URLSearchParams(query)) });
