// The form of a ticket: who asks, what about, and who takes care of it. What the client said becomes the first message of a
// new one.
import { useMemo, useRef, useState } from "preact/hooks";
import { ApiError, formKey, get, patch, post, useLoad } from "../api.js";
import { LinkBox } from "../combobox.js";
import { openConflict } from "../conflict.js";
import { Missing } from "../missing.js";
import { dropDraft, keepDraft, readDraft } from "../drafts.js";
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
  const [base, setBase] = useState({ item, etag });
  const start = useMemo(() => (item ? Object.fromEntries(table.fields.map((field) => [field.name, valueOf(item, field.name) ?? ""])) : { priority: "normal", ...Object.fromEntries(new URLSearchParams(place.value.query)) }), []);
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
    const now = { ...values, ...changes };
    setValues(now);
    keepDraft(draftName, () => now);
  };
  const fields = table.fields.filter((field) => (item ? field.patch : field.create) && editable(field));
  /** Sends what was changed; somebody else's changes are shown first.
   * @param {{ item: Item | null, etag: string }} from @param {Item} now */
  const change = async (from, now) => {
    const body = changes(fields, from.item ?? {}, now);
    const here = savedHere();
    try {
      const answer = Object.keys(body).length > 0 ? await patch(itemPath(table, from.item?.id), body, { etag: from.etag }) : null;
      if (latest.current !== now && !here.left()) {
        // What was typed meanwhile is saved too.
        const saved = await get(itemPath(table, from.item?.id));
        const next = { item: saved.data, etag: saved.etag };
        setBase(next);
        return await change(next, latest.current);
      }
      dropDraft(draftName);
      here.open(`${table.address}/${from.item?.id}`, answer);
    } catch (problem) {
      if (!(problem instanceof ApiError) || problem.status !== 412) throw problem;
      const theirs = await get(itemPath(table, from.item?.id));
      openConflict({ table, mine: body, base: from.item ?? {}, theirs, done: (merged, newer) => {
        const next = { item: newer.data, etag: newer.etag };
        const mixed = { ...Object.fromEntries(table.fields.map((field) => [field.name, valueOf(newer.data, field.name) ?? ""])), ...merged };
        setBase(next);
        setValues(mixed);
        void change(next, mixed).catch(setError);
      } });
    }
  };
  const save = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    const here = savedHere();
    try {
      if (item) return await change(base, values);
      const answer = await post(table.path, Object.fromEntries(fields.map((field) => field.name).filter((name) => values[name]).map((name) => [name, values[name]])), { key });
      const { data } = answer;
      const message = latest.current.message?.trim() ? latest.current.message : "";
      if (message) {
        await post(`/v1/tickets/${data.id}/messages/inbound`, { body: message, author_name: data.client_name || (client ? [client.firstname, client.lastname].filter(Boolean).join(" ") || client.company_name : ""), author_email: data.client_email || client?.email || "" }, { key: messageKey });
        // A message of the client reopens a ticket; the chosen status stays.
        if (values.status && ["waiting", "closed"].includes(statuses.find((one) => one.name === values.status)?.role)) await patch(itemPath(table, data.id), { status: values.status });
      }
      if (latest.current !== values && !here.left()) {
        const saved = await get(itemPath(table, data.id));
        return await change({ item: saved.data, etag: saved.etag }, latest.current);
      }
      dropDraft(draftName);
      here.open(`${table.address}/${data.id}`, answer);
    } catch (problem) {
      if (here.missed(problem)) return;
      setError(problem);
      requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true], .error-list a"))?.focus());
    } finally {
      setBusy(false);
    }
  };
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
    div({ class: "form-foot" }, h(Button, { href: item ? `${table.address}/${item.id}` : table.address }, t("cancel")), h(Button, { type: "submit", primary: true, busy }, t("save"))));
}
