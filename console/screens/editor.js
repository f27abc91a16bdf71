// The editor of a document: client, dates, rows with live totals, notes.
import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ApiError, formKey, get, post, reloadAll, useLoad } from "../api.js";
import { LinkBox } from "../combobox.js";
import { ChangedNotice, openConflict } from "../conflict.js";
import { removeItem } from "../detail.js";
import { confirm } from "../dialog.js";
import { changedSince, dropDraft, keepDraft, readDraft, saveTyped } from "../drafts.js";
import { DayBox, TextBox } from "../field.js";
import { ErrorList } from "../form.js";
import { plusDays, today } from "../format.js";
import { Others } from "../here.js";
import { a, div, form, h, label, p, span } from "../html.js";
import { change, make } from "../made.js";
import { useKeys } from "../keys.js";
import { Missing } from "../missing.js";
import { fromCents } from "../money.js";
import { Button, Card, Head, Menu, Pill, Restored, Skeleton, onPhone, savedHere, say } from "../parts.js";
import { go, place } from "../router.js";
import { can, itemPath, may, valueOf } from "../schema.js";
import { RowsEditor, Sums, editedRow, isBlank, liveTotals, rowBody, salesRates, unreadable } from "../rows.js";
import { detailText, fieldName, t, tableName, word } from "../words.js";
import { Beside, openPreview } from "./editor_preview.js";
import { openQuickClient } from "./quick_client.js";
import { openSend } from "./send.js";
import { linked, pdfOf, shortNumber } from "../value.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {Item} item */
export const isDraft = (item) => item.meta?.generation_mode === "draft";

/** @typedef {import("@preact/signals").Signal<boolean>} Flag */

/** @param {{ table: Table, id: string | null, typed?: Flag }} properties `typed` tells the page around it whether something is not saved. */
export function Editor({ table, id, typed }) {
  const loaded = useLoad(id ? itemPath(table, id) : null, { typing: true });
  const rates = useLoad("/v1/tax-rates").answer;
  if (id && loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if ((id && !loaded.answer) || !rates) return div({ class: "page" }, h(Skeleton, { rows: 10 }));
  return h(Editing, { key: id ?? "new", table, item: loaded.answer?.data ?? null, etag: loaded.answer?.etag ?? "", allRates: rates.data, typed });
}

/** Remembers the field with the caret; returns what puts it back when the editor has another address. */
function keepCaret() {
  const box = document.activeElement;
  if (!(box instanceof HTMLInputElement || box instanceof HTMLTextAreaElement) || !box.closest(".editor")) return () => {};
  const [from, to] = [box.selectionStart, box.selectionEnd];
  const same = box.id ? `#${CSS.escape(box.id)}` : `[aria-label="${CSS.escape(box.getAttribute("aria-label") ?? "")}"]`;
  /** @param {number} looks */
  const look = (looks = MAX_LOOKS) => {
    const found = /** @type {HTMLInputElement | null} */ (document.querySelector(`.editor ${same}`));
    if (!found || found === box) { if (looks > 0) requestAnimationFrame(() => look(looks - 1)); return; }
    found.focus({ preventScroll: true });
    found.setSelectionRange(from, to);
  };
  return look;
}

const MAX_LOOKS = 120;

/** A dialog gives the focus back when it closes. */
const AFTER_DIALOG = 50;

const HEAD = ["client_id", "title", "invoice_date", "due_date", "reference", "notes", "language"];

/** @param {{ table: Table, item: Item | null, etag: string, allRates: Item[], typed?: Flag }} properties */
function Editing({ table, item, etag, allRates, typed }) {
  const base = useRef({ item, etag });
  const known = useRef(new Set([etag]));
  const draftName = place.value.path;
  const kept = useMemo(() => readDraft(draftName), []);
  const rates = useMemo(() => salesRates(allRates), []);
  const start = useRef(beginning(item, place.value.query));
  const values = useSignal(/** @type {Item} */ ({ ...start.current, ...kept?.value.values }));
  const rows = useSignal((kept?.value.rows ?? item?.rows ?? []).map((/** @type {Item} */ row) => editedRow(row)));
  const live = useMemo(() => liveTotals(rows, rates), []);
  const restored = useSignal(kept !== null);
  const error = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const own = useSignal(kept !== null);
  const dirty = typed ?? own;
  /** What somebody else made final meanwhile. */
  const refusedFor = useSignal(/** @type {Item | null} */ (null));
  const final = item && !isDraft(item) ? item : refusedFor.value;
  const dirtyRows = useRef(Boolean(kept?.value.rows));
  const touchedDue = useRef(Boolean(item || kept?.value.values?.due_date));
  const key = useMemo(formKey, []);

  useEffect(() => {
    if (!item || dirty.value || known.current.has(etag)) return;
    known.current.add(etag);
    base.current = { item, etag };
    start.current = beginning(item, "");
    values.value = start.current;
    rows.value = (item.rows ?? []).map((/** @type {Item} */ row) => editedRow(row));
  }, [etag]);

  const changed = () => { dirty.value = true; keepDraft(draftName, draftOf); };
  const draftOf = () => {
    const head = changedSince(beginning(base.current.item, ""), values.value);
    return head || dirtyRows.current ? { values: head ?? {}, ...(dirtyRows.current ? { rows: bodyRows() } : {}) } : null;
  };
  const bodyRows = () => rows.value.filter((/** @type {any} */ row) => !isBlank(row)).map((/** @type {any} */ row) => rowBody(row, "name", rates));
  /** @param {Item} changes */
  const set = (changes) => { values.value = { ...values.value, ...changes }; changed(); };

  /** Saves the draft and returns it, or null if it was refused.
   * @returns {Promise<{ data: Item, etag: string } | null>} */
  const save = async () => {
    if (final) return showFinal();
    if (busy.value || unreadable()) return null;
    const before = base.current.item;
    if (before && !dirty.value) return { data: before, etag: base.current.etag };
    busy.value = true;
    error.value = null;
    let body = bodyOf();
    const here = savedHere();
    const send = async () => {
      body = bodyOf();
      const answer = before ? await change(table, before.id, body, base.current.etag, draftName) : await make(table, body, key, draftName);
      const saved = await get(itemPath(table, answer.data.id ?? before?.id));
      known.current.add(saved.etag);
      return saved;
    };
    /** @param {import("../api.js").Answer} saved */
    const continueAfter = (saved) => { base.current = { item: saved.data, etag: saved.etag }; start.current = beginning(saved.data, ""); };
    try {
      // A new document stays new until all of it is saved.
      const saved = await saveTyped({ draft: draftName, typed: () => JSON.stringify(bodyOf()), left: here.left, send, next: (saved) => before && continueAfter(saved) });
      // What was typed by somebody who left is a draft of the new document.
      if (!before && here.left()) return saved;
      continueAfter(saved);
      dirty.value = false;
      dirtyRows.current = false;
      restored.value = false;
      return saved;
    } catch (problem) {
      await refused(problem, body, here);
      return null;
    } finally {
      busy.value = false;
    }
  };
  /** Goes on from what somebody else saved, with what was changed here, and saves it.
   * @param {Item} merged @param {import("../api.js").Answer} newer */
  const continueFrom = (merged, newer) => {
    base.current = { item: newer.data, etag: newer.etag };
    known.current.add(newer.etag);
    start.current = beginning(newer.data, "");
    values.value = { ...start.current, ...merged };
    rows.value = (merged.rows ?? newer.data.rows ?? []).map((/** @type {Item} */ row) => editedRow(row));
    setTimeout(() => void saveAndSay());
  };
  /** @param {unknown} problem @param {Item} body @param {ReturnType<typeof savedHere>} here */
  const refused = async (problem, body, here) => {
    const before = base.current.item;
    if (before && problem instanceof ApiError && problem.status === 412) {
      const theirs = await get(itemPath(table, before.id));
      if (!isDraft(theirs.data)) {
        refusedFor.value = theirs.data;
        return void (here.missed(problem) || showFinal());
      }
      return openConflict({ table, mine: body, base: before, theirs, done: continueFrom });
    }
    if (here.missed(problem)) return;
    error.value = problem;
    if (!(problem instanceof ApiError)) return;
    const used = rows.value.filter((/** @type {any} */ row) => !isBlank(row));
    for (const detail of problem.details) {
      const at = /^rows\[(\d+)\]/.exec(detail.field);
      const row = at ? used[Number(at[1])] : undefined;
      if (row) row.error.value = detailText(detail);
    }
    scrollTo({ top: 0, behavior: "smooth" });
    setTimeout(() => /** @type {HTMLElement | null} */ (document.querySelector(".editor [aria-invalid=true]"))?.focus({ preventScroll: true }), AFTER_DIALOG);
  };
  const showFinal = () => {
    scrollTo({ top: 0, behavior: "smooth" });
    setTimeout(() => /** @type {HTMLElement | null} */ (document.querySelector(".editor .made-final a"))?.focus({ preventScroll: true }), AFTER_DIALOG);
    return null;
  };
  const bodyOf = () => {
    const head = Object.fromEntries(HEAD.filter((name) => (item ? values.value[name] !== start.current[name] : values.value[name] !== "")).map((name) => [name, values.value[name] === "" ? null : values.value[name]]));
    const lines = bodyRows();
    const first = lines[0];
    if (!values.value.title && first) head.title = first.name;
    // Rows are sent as a whole, so only if they were changed here.
    if (item) return { ...head, ...(dirtyRows.current ? { rows: lines } : {}) };
    const { net, tax, gross } = live.value;
    return { ...head, ...hidden(place.value.query), rows: lines, ...(lines.length ? { total_excl_vat: fromCents(net), vat_amount: fromCents(tax), total_incl_vat: fromCents(gross) } : {}) };
  };
  const saveAndSay = async () => {
    const here = savedHere();
    const saved = await save();
    // The page of a draft is its editor.
    if (saved && item && !here.left()) say(t("saved"));
    else if (saved) {
      const back = keepCaret();
      if (here.open(`${table.address}/${saved.data.id}`, null)) back();
    }
  };
  /** What is missing is said before anything is asked. */
  const hasRows = () => {
    if (bodyRows().length > 0) return true;
    say(t("document.no_rows"), { error: true });
    /** @type {HTMLElement | null} */ (document.querySelector(".editor .cell-name input"))?.focus();
    return false;
  };
  /** @param {boolean} send */
  const finalize = (send) => final ? void showFinal() : unreadable() || !hasRows() ? undefined : confirm({
    title: t("document.finalize_title", { one: tableName(table.key, 1).toLowerCase(), One: tableName(table.key, 1) }), text: h(NextNumber, { table, number: base.current.item?.number ?? "", date: values.value.invoice_date }), action: send ? t("document.finalize_send") : t("action.finalize"),
    run: async () => {
      // After a save that is under way.
      while (busy.value) await new Promise((done) => setTimeout(done, AFTER_DIALOG));
      const here = savedHere();
      const saved = await save();
      if (!saved) return;
      const answer = await post(`${itemPath(table, saved.data.id)}/finalize`, undefined, { etag: saved.etag });
      if (here.open(`${table.address}/${saved.data.id}`, answer, { text: t("document.finalized", { number: answer.data.number ?? "" }) }) && send) openSend({ table, id: saved.data.id });
    },
  });
  useKeys([
    { key: "Ctrl+s", label: t("document.save"), run: () => void saveAndSay(), always: true },
    { key: "Ctrl+Enter", label: t("action.finalize"), run: () => finalize(true) },
  ]);
  const sheet = { table, item, values, rows, rates, totals: live };
  useEffect(() => { if (!item && !values.value.client_id && !onPhone.value) document.getElementById("f-client_id")?.focus({ preventScroll: true }); }, []);
  const client = values.value.client_id ? linked("clients", values.value.client_id).value : null;
  useEffect(() => {
    // The terms of the client fill in the date until somebody does.
    if (!client || touchedDue.current || !values.value.invoice_date) return;
    const days = table.key === "quotes" ? client.quote_expiration_days : client.payment_term;
    if (typeof days === "number") values.value = { ...values.value, due_date: plusDays(values.value.invoice_date, days) };
  }, [client, values.value.invoice_date]);

  const errors = error.value instanceof ApiError ? Object.fromEntries(error.value.details.map((detail) => [detail.field, detailText(detail)])) : {};
  /** @param {string} name @param {import("../html.js").View} control @param {string} [extra] */
  const field = (name, control, extra = "") => div({ class: `field ${extra}` }, label({ for: `f-${name}` }, fieldName(table.key, name)), control, errors[name] ? p({ class: "wrong" }, errors[name]) : null);
  /** @param {string} name */
  const control = (name) => ({ id: `f-${name}`, value: values.value[name], invalid: Boolean(errors[name]), onChange: (/** @type {any} */ value) => set({ [name]: value }) });
  return form({ class: "page editor with-preview", noValidate: true, onSubmit: (event) => { event.preventDefault(); void saveAndSay(); } },
    h(Head, { title: item ? tableName(table.key, 1) : word([`new.${table.key}`], ""), tab: item?.title || undefined, over: a({ href: table.address }, tableName(table.key)), beside: [h(Pill, { key: "status", table: table.key, field: "payment_status", value: final?.payment_status ?? "draft" }), item ? h(Others, { key: "others", address: `${table.address}/${item.id}` }) : null] },
      final ? null : h(Fragment, null,
        h(SavedLine, { busy, dirty, made: item !== null }),
        h(Button, { quiet: true, class: "narrow-only wide-only", onClick: () => openPreview(sheet, dirty.value) }, t("document.preview")),
        h(Button, { type: "submit", busy: busy.value }, t("document.save")),
        div({ class: "split" }, h(Button, { primary: true, onClick: () => finalize(true) }, t("document.finalize_send")),
          h(Menu, { label: t("more"), icon: "down", primary: true, items: [
            { label: t("document.preview"), icon: "files", hidden: !onPhone.value, run: () => openPreview(sheet, dirty.value) },
            { label: t("document.pdf"), icon: "download", hidden: !item, href: item ? pdfOf(table, item) : "", target: "_blank" },
            { label: t("document.only_finalize"), icon: "check", run: () => finalize(false) },
            { label: t("delete"), icon: "trash", danger: true, hidden: !item || !can(table, "delete"), run: () => { dropDraft(draftName); if (item) removeItem(table, base.current.item ?? item, base.current.etag); } },
          ] })))),
    restored.value && !final ? h(Restored, { draft: draftName, discard: () => { dropDraft(draftName); values.value = start.current; dirtyRows.current = false; rows.value = (item?.rows ?? []).map((/** @type {Item} */ row) => editedRow(row)); restored.value = false; dirty.value = false; } }) : null,
    final ? h(MadeFinal, { table, item: final, dirty, discard: () => { dropDraft(draftName); dirty.value = false; reloadAll(); go(`${table.address}/${final.id}`, { replace: true }); } }) : null,
    item && !final && !known.current.has(etag) ? h(ChangedElsewhere, { table, item, busy, dirty }) : null,
    error.value ? h(ErrorList, { table, error: error.value, fields: table.fields }) : null,
    h(Card, { class: "editor-head" }, div({ class: "fields" },
      field("client_id", div(null, h(LinkBox, { ...control("client_id"), table: "clients", onChange: (id) => set({ client_id: id }), onNew: (typed) => openQuickClient(typed, (made) => set({ client_id: made.id })) }), h(ClientLine, { client }))),
      field("title", h(TextBox, { ...control("title"), length: 255 })),
      div({ class: "field-row" },
        field("invoice_date", h(DayBox, control("invoice_date"))),
        field("due_date", h(DayBox, { ...control("due_date"), onChange: (day) => { touchedDue.current = true; set({ due_date: day }); } })),
        field("reference", h(TextBox, { ...control("reference"), length: 255 }))))),
    item?.project_id && table.key === "invoices" && may("projects.read") ? h(BilledHours, { item }) : null,
    h(Card, { class: "rows-card" }, h(RowsEditor, { rows, rates, onChange: () => { dirtyRows.current = true; changed(); } }),
      div({ class: "rows-foot" }, field("notes", h(TextBox, { ...control("notes"), length: 4096, long: true, placeholder: t("document.notes_hint") })), h(Sums, { totals: live, rates }))),
    h(Beside, { sheet }));
}

/** What finalizing does: the number that it will get, as far as it is known now.
 * @param {{ table: Table, number: string, date: string }} properties */
function NextNumber({ table, number, date }) {
  const own = number !== "" && shortNumber(number) === number;
  const next = useLoad(own ? null : `${table.path}/next-number${date ? `?date=${date}` : ""}`).answer?.data.number;
  return [own ? t("document.keeps_number", { number }) : next ? t("document.next_number", { number: next }) : t("document.gets_number"), " ", t("document.finalize_text")];
}

/** Apart, so that the first change does not redraw all rows.
 * @param {{ busy: Flag, dirty: Flag, made: boolean }} properties */
const SavedLine = ({ busy, dirty, made }) => span({ class: "soft saved" }, busy.value ? t("document.saving") : dirty.value ? t("document.unsaved") : made ? t("document.all_saved") : "");

/** Says that somebody else has changed what is being typed in.
 * @param {{ table: Table, item: Item, busy: Flag, dirty: Flag }} properties */
const ChangedElsewhere = ({ table, item, busy, dirty }) => (dirty.value && !busy.value ? h(ChangedNotice, { table, item }) : null);

/** Says that the document can no longer be changed. What was typed stays, to be copied.
 * @param {{ table: Table, item: Item, dirty: Flag, discard: () => void }} properties */
const MadeFinal = ({ table, item, dirty, discard }) => div({ class: "notice made-final", role: "alert" },
  span(null, t("document.made_final", { number: shortNumber(item.number) }), " ", dirty.value ? t("document.not_saved") : ""),
  h(Button, { small: true, href: pdfOf(table, item), target: "_blank" }, t("document.see_final")),
  h(Button, { small: true, onClick: discard }, t(dirty.value ? "draft.discard" : "list.open")));

/** Hours stay with the invoice when their row is removed, so the reader is told.
 * @param {{ item: Item }} properties */
function BilledHours({ item }) {
  const count = useLoad(`/v1/projects/${item.project_id}/hours?per_page=1&invoice_id=${item.id}`).answer?.meta.total;
  return count ? div({ class: "notice" }, span(null, t("document.has_hours")), h(Button, { small: true, href: `/projects/${item.project_id}` }, tableName("projects", 1))) : null;
}

/** What is known about the client, beside the field.
 * @param {{ client: Item | null | undefined }} properties */
function ClientLine({ client }) {
  const overdue = useLoad(client ? `/v1/invoices?client_id=${client.id}&payment_status=overdue&per_page=1` : null).answer?.meta.total ?? 0;
  if (!client) return null;
  return p({ class: "help" }, t("document.pays_in", { n: client.payment_term ?? 0 }), overdue > 0 ? span({ class: "late" }, ` · ${t("document.n_overdue", { n: overdue })}`) : null);
}

/** @param {Item | null} item @param {string} query @returns {Item} */
function beginning(item, query) {
  const given = new URLSearchParams(query);
  return Object.fromEntries(HEAD.map((name) => [name, item ? (valueOf(item, name) ?? "") : (given.get(name) ?? (name === "invoice_date" ? today() : ""))]));
}

/** Links that a new document gets from where it was started.
 * @param {string} query */
const hidden = (query) => Object.fromEntries([...new URLSearchParams(query)].filter(([name]) => name === "project_id" || name === "deal_id"));
