// The editor of a subscription: client, schedule, lines with live totals.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ApiError, formKey, get, useLoad } from "../api.js";
import { LinkBox } from "../combobox.js";
import { ChangedNotice, openConflict } from "../conflict.js";
import { confirm } from "../dialog.js";
import { changedSince, dropDraft, keepDraft, readDraft, saveTyped } from "../drafts.js";
import { ChoiceBox, DayBox, NumberBox, TextBox } from "../field.js";
import { ErrorList } from "../form.js";
import { day, today } from "../format.js";
import { a, div, form, h, label, p } from "../html.js";
import { change, make } from "../made.js";
import { useKeys } from "../keys.js";
import { Missing } from "../missing.js";
import { Button, Card, Head, Restored, Skeleton, savedHere } from "../parts.js";
import { RowsEditor, Sums, editedRow, isBlank, liveTotals, rowBody, salesRates, unreadable } from "../rows.js";
import { place } from "../router.js";
import { fieldOf, itemPath } from "../schema.js";
import { choiceName, detailText, fieldName, t, tableName, word } from "../words.js";
import { openQuickClient } from "./quick_client.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table, id: string | null }} properties */
export function SubscriptionEditor({ table, id }) {
  const loaded = useLoad(id ? itemPath(table, id) : null, { typing: true });
  const rates = useLoad("/v1/tax-rates").answer;
  if (id && loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if ((id && !loaded.answer) || !rates) return div({ class: "page" }, h(Skeleton, { rows: 10 }));
  return h(Editing, { key: id ?? "new", table, item: loaded.answer?.data ?? null, etag: loaded.answer?.etag ?? "", allRates: rates.data });
}

/** @param {{ table: Table, item: Item | null, etag: string, allRates: Item[] }} properties */
function Editing({ table, item, etag, allRates }) {
  const base = useRef({ item, etag });
  const draftName = place.value.path;
  const kept = useMemo(() => readDraft(draftName), []);
  const rates = useMemo(() => salesRates(allRates), []);
  const start = useRef(beginning(item, place.value.query));
  const values = useSignal(/** @type {Item} */ ({ ...start.current, ...kept?.value.values }));
  const rows = useSignal((kept?.value.lines ?? item?.lines ?? []).map((/** @type {Item} */ row) => editedRow(row)));
  const live = useMemo(() => liveTotals(rows, rates), []);
  const error = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const key = useMemo(formKey, []);
  const lines = () => rows.value.filter((/** @type {any} */ row) => !isBlank(row)).map((/** @type {any} */ row) => rowBody(row, "title", rates));
  const touched = useSignal(kept !== null);
  const touchedLines = useRef(Boolean(kept?.value.lines));
  const changed = () => { touched.value = true; keepDraft(draftName, draftOf); };
  const draftOf = () => {
    const head = changedSince(beginning(base.current.item, ""), values.value);
    return head || touchedLines.current ? { values: head ?? {}, ...(touchedLines.current ? { lines: lines() } : {}) } : null;
  };
  /** Shows the subscription as it is on the server.
   * @param {Item | null} now @param {string} version */
  const follow = (now, version) => {
    base.current = { item: now, etag: version };
    start.current = beginning(now, place.value.query);
    values.value = start.current;
    rows.value = (now?.lines ?? []).map((/** @type {Item} */ row) => editedRow(row));
    touched.value = false;
    touchedLines.current = false;
  };
  // Untouched, the editor follows the subscription.
  useEffect(() => { if (item && !touched.value && etag !== base.current.etag) follow(item, etag); }, [etag]);
  /** @param {Item} changes */
  const set = (changes) => { values.value = { ...values.value, ...changes }; changed(); };
  const weekly = values.value.frequency === "weekly" || values.value.frequency === "four_weeks";

  /** @param {string} status */
  const bodyOf = (status) => {
    const names = ["title", "frequency", "subscription_start", "subscription_end", weekly ? "day_of_week" : "day_of_month", ...(item ? [] : ["client_id"])];
    const head = Object.fromEntries(names.filter((name) => (item ? values.value[name] !== start.current[name] : values.value[name] !== "")).map((name) => [name, sendable(name, values.value[name])]));
    // Lines are sent as a whole, so only if they were changed here.
    return { ...head, ...(!item || touchedLines.current ? { lines: lines() } : {}), ...(item ? {} : { status }) };
  };
  /** @param {string} status */
  const save = async (status) => {
    if (busy.value || unreadable()) return;
    busy.value = true;
    error.value = null;
    let body = bodyOf(status);
    const here = savedHere();
    const continueAfter = async () => {
      if (!item) return;
      const saved = await get(itemPath(table, item.id));
      base.current = { item: saved.data, etag: saved.etag };
      start.current = beginning(saved.data, "");
    };
    try {
      const answer = await saveTyped({ draft: draftName, typed: () => JSON.stringify(bodyOf(status)), left: here.left, next: continueAfter,
        send: () => { body = bodyOf(status); return item ? change(table, item.id, body, base.current.etag, draftName) : make(table, body, key, draftName); } });
      here.open(`${table.address}/${answer.data.id ?? item?.id}`, answer);
    } catch (problem) {
      if (item && problem instanceof ApiError && problem.status === 412) return await merge(item.id, body);
      if (here.missed(problem)) return;
      error.value = problem;
      const used = rows.value.filter((/** @type {any} */ row) => !isBlank(row));
      for (const detail of problem instanceof ApiError ? problem.details : []) {
        const row = used[Number(/^lines\[(\d+)\]/.exec(detail.field)?.[1] ?? -1)];
        if (row) row.error.value = detailText(detail);
      }
      scrollTo({ top: 0, behavior: "smooth" });
    } finally {
      busy.value = false;
    }
  };
  /** An active subscription whose first period has begun makes its invoice at once. */
  const begin = () => {
    const first = values.value.subscription_start;
    if (unreadable()) return;
    if (item || !first || first > today()) return void save(item ? "" : "active");
    confirm({ title: t("subscription.save_active"), text: t("subscription.invoices_now", { day: day(first) }), action: t("subscription.save_active"), run: () => save("active") });
  };
  /** Somebody else saved in between: what only they changed is theirs, of what both changed people choose.
   * @param {string} id @param {Item} mine */
  const merge = async (id, mine) => {
    const theirs = await get(itemPath(table, id));
    const flat = (/** @type {Item | null} */ one) => ({ ...one, ...beginning(one, "") });
    openConflict({ table, mine, base: flat(base.current.item), theirs: { ...theirs, data: flat(theirs.data) }, done: (merged) => {
      const { lines: kept, ...head } = merged;
      follow(theirs.data, theirs.etag);
      if (kept) { rows.value = kept.map((/** @type {Item} */ row) => editedRow(row)); touchedLines.current = true; }
      set(Object.fromEntries(Object.entries(head).map(([name, value]) => [name, value === null ? "" : name.startsWith("day_of") ? String(value) : value])));
      // After this attempt, which is still busy.
      setTimeout(() => void save(""));
    } });
  };
  useKeys([{ key: "Ctrl+s", label: t("save"), run: () => void save(item ? "" : "draft"), always: true }]);
  const errors = error.value instanceof ApiError ? Object.fromEntries(error.value.details.map((detail) => [detail.field, detailText(detail)])) : {};
  /** @param {string} name @param {import("../html.js").View} control */
  const field = (name, control) => div({ class: "field" }, label({ for: `f-${name}` }, fieldName(table.key, name)), control, errors[name] ? p({ class: "wrong", id: `f-${name}-error` }, errors[name]) : null);
  /** @param {string} name */
  const control = (name) => ({ id: `f-${name}`, value: values.value[name], invalid: Boolean(errors[name]), describedBy: errors[name] ? `f-${name}-error` : undefined, onChange: (/** @type {any} */ value) => set({ [name]: value }) });
  const frequencies = (fieldOf(table, "frequency")?.choices ?? []).map((one) => /** @type {[string, string]} */ ([one, choiceName("subscriptions", "frequency", one)]));
  const weekdays = [1, 2, 3, 4, 5, 6, 7].map((one) => /** @type {[string, string]} */ ([String(one), word([`weekday.${one}`], "")]));
  return form({ class: "page editor", noValidate: true, onSubmit: (event) => { event.preventDefault(); begin(); } },
    h(Head, { title: item ? item.title : word(["new.subscriptions"], ""), over: a({ href: table.address }, tableName(table.key)) },
      item ? h(Button, { href: `${table.address}/${item.id}`, onClick: () => dropDraft(draftName) }, t("cancel")) : h(Button, { busy: busy.value, onClick: () => void save("draft") }, t("subscription.save_draft")),
      h(Button, { type: "submit", primary: true, busy: busy.value }, item ? t("save") : t("subscription.save_active"))),
    kept && touched.value ? h(Restored, { draft: draftName, discard: () => { dropDraft(draftName); follow(item, etag); } }) : null,
    item && touched.value && etag !== base.current.etag && !busy.value ? h(ChangedNotice, { table, item }) : null,
    error.value ? h(ErrorList, { table, error: error.value, fields: table.fields }) : null,
    h(Card, { class: "editor-head" }, div({ class: "fields" },
      field("client_id", h(LinkBox, { ...control("client_id"), table: "clients", disabled: Boolean(item), onChange: (id) => set({ client_id: id }), onNew: (typed) => openQuickClient(typed, (made) => set({ client_id: made.id })) })),
      field("title", h(TextBox, { ...control("title"), length: 255 })),
      div({ class: "field-row four" },
        field("frequency", h(ChoiceBox, { ...control("frequency"), options: frequencies })),
        weekly ? field("day_of_week", h(ChoiceBox, { ...control("day_of_week"), options: weekdays, empty: true })) : field("day_of_month", h(NumberBox, { ...control("day_of_month"), placeholder: dayOf(values.value.subscription_start, item) })),
        field("subscription_start", h(DayBox, control("subscription_start"))),
        field("subscription_end", h(DayBox, control("subscription_end")))))),
    h(Card, { class: "rows-card" }, h(RowsEditor, { rows, rates, onChange: () => { touchedLines.current = true; changed(); } }), div({ class: "rows-foot" }, div(null), h(Sums, { totals: live, rates }))));
}

/** The day of the month if none is chosen: that of the first invoice, or of the start.
 * @param {string} start @param {Item | null} item */
function dayOf(start, item) {
  const day = Number(start?.slice(8));
  const first = item?.start_date === start && item?.schedule?.schedule_type === "start_date" ? item.schedule.day_of_month : day;
  return !day ? undefined : first === day ? t("subscription.day_of_start", { day }) : String(first);
}

/** @param {string} name @param {any} value */
const sendable = (name, value) => (value === "" ? null : name.startsWith("day_of") && /^\d+$/.test(String(value)) ? Number(value) : value);

/** @param {Item | null} item @param {string} query @returns {Item} */
function beginning(item, query) {
  const given = new URLSearchParams(query);
  if (!item) return { client_id: given.get("client_id") ?? "", title: "", frequency: "monthly", subscription_start: today(), subscription_end: "", day_of_month: "", day_of_week: "" };
  const monthly = item.schedule?.schedule_type === "day_of_month";
  return { client_id: item.client_id, title: item.title, frequency: item.term, subscription_start: item.start_date, subscription_end: item.end_date ?? "", day_of_month: monthly ? String(item.schedule.day_of_month ?? "") : "", day_of_week: "" };
}
