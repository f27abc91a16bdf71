// The page of a project: budget against hours and invoices, hours with their approval, tasks and documents.
import { useMemo } from "preact/hooks";
import { formKey, post, useLoad } from "../api.js";
import { Missing } from "../missing.js";
import { Dialog, confirm, openDialog, useTyped } from "../dialog.js";
import { DayBox, TextBox } from "../field.js";
import { day, hours, money, moneyOfCents, nearDay, readNumber, today } from "../format.js";
import { History } from "../history.js";
import { Notes } from "../notes.js";
import { a, div, h, input, label, li, p, span, strong, ul } from "../html.js";
import { useKeys } from "../keys.js";
import { cents } from "../money.js";
import { Button, Card, Empty, Facts, Head, Menu, Pill, Skeleton, deleteLater, say, sayError } from "../parts.js";
import { Documents, RelatedRecords } from "../related.js";
import { go } from "../router.js";
import { can, itemPath, may, me, tables } from "../schema.js";
import { t, tableName } from "../words.js";
import { LinkName } from "../value.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table, id: string }} properties */
export function ProjectPage({ table, id }) {
  const loaded = useLoad(itemPath(table, id));
  const entries = useLoad(`/v1/projects/${id}/hours?per_page=100&sort=date&order=desc`).answer;
  const worked = useWorked(id, entries);
  const free = useFree(entries);
  const edits = can(table, "patch");
  const log = () => openDialog(({ close }) => h(LogHours, { project: id, close }));
  useKeys(edits ? [{ key: "e", label: t("edit"), run: () => go(`${table.address}/${id}/edit`) }, { key: "h", label: t("project.log"), run: log }] : []);
  if (loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (!loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 10 }));
  const item = loaded.answer.data;
  const rows = /** @type {Item[]} */ (entries?.data ?? []);
  const bill = () => void import("./bill_hours.js").then(({ BillHours }) => openDialog(({ close }) => h(BillHours, { project: item, close })), sayError);
  return div({ class: "page" },
    h(Head, { title: item.name, over: [a({ key: "list", href: table.address }, tableName(table.key)), ` · ${item.number}`], beside: h(Pill, { table: "projects", field: "status", value: item.status }) },
      edits ? h(Button, { primary: true, icon: "hours", onClick: log }, t("project.log")) : null, edits && tables.invoices && can(tables.invoices, "create") && worked.billable > 0 ? h(Button, { icon: "invoices", onClick: bill }, t("bill.title")) : null, edits ? h(Button, { icon: "edit", href: `${table.address}/${id}/edit` }, t("edit")) : null),
    h(Budget, { item, worked }),
    div({ class: "columns" },
      div({ class: "column-main" },
        h(Card, { title: [tableName("hours"), span({ class: "count" }, ` ${hours(worked.all)}`)] }, rows.length === 0 ? h(Empty, { icon: "hours", title: t("project.no_hours") }) : ul({ class: "lines" }, rows.map((row) => h(HourLine, { key: row.id, project: id, row, edits, free: free.has(row.meta?.invoice_id) })))),
        h(RelatedRecords, { table: "tasks", link: "project_id", item, always: true }), h(Documents, { path: `/v1/projects/${id}`, link: "project_id", item }), h(RelatedRecords, { table: "tickets", link: "project_id", item })),
      div({ class: "column-side" }, h(Card, { title: t("facts") }, h(Facts, { facts: [[t("field.client_id"), item.client_id ? h(LinkName, { table: "clients", id: item.client_id }) : ""], [t("field.start_date"), day(item.start_date)], [t("field.end_date"), day(item.end_date)], [t("field.budget"), item.budget ? money(item.budget) : ""], [t("field.description"), item.description]] })), h(Notes, { about: "project_id", id }), h(History, { table, item }))));
}

/** The invoices that let their hours go: drafts, and those that are credited in full.
 * @param {import("../api.js").Answer | null} entries @returns {Set<string>} */
function useFree(entries) {
  const ids = new Set(entries?.data.map((/** @type {Item} */ row) => row.meta?.invoice_id).filter(Boolean));
  return new Set(useLoad(ids.size && may("invoices.write") ? `/v1/invoices?per_page=100&payment_status=draft,credited&id=${[...ids].join(",")}` : null).answer?.data.map((/** @type {Item} */ invoice) => invoice.id));
}

const COUNTED = "draft,submitted,approved";

/** The minutes that were worked, how many of them are approved, and how many of those are on no invoice yet; rejected ones do
 * not count. The list has the latest only: the sums of the server are used if there are more.
 * @param {string} id @param {import("../api.js").Answer | null} entries */
function useWorked(id, entries) {
  const rows = /** @type {Item[]} */ (entries?.data ?? []);
  const more = (entries?.meta.total ?? 0) > rows.length;
  const path = `/v1/projects/${id}/hours?per_page=1&sums=hours&status=`;
  const [all, approved, billable] = [useLoad(more ? `${path}${COUNTED}` : null), useLoad(more ? `${path}approved` : null), useLoad(more ? `${path}approved&invoiced=false` : null)].map((loaded) => Math.round((loaded.answer?.meta.sums?.hours ?? 0) * 60));
  const sum = (/** @type {Item[]} */ some) => some.reduce((total, row) => total + row.minutes, 0);
  const done = rows.filter((row) => row.status === "approved");
  return more ? { all: all ?? 0, approved: approved ?? 0, billable: billable ?? 0 } : { all: sum(rows.filter((row) => COUNTED.split(",").includes(row.status))), approved: sum(done), billable: sum(done.filter((row) => !row.meta?.invoice_id)) };
}

/** @param {{ item: Item, worked: { all: number, approved: number } }} properties */
function Budget({ item, worked }) {
  const documents = useLoad(may("invoices.read") ? `/v1/projects/${item.id}/documents` : null).answer;
  const own = (/** @type {Item[]} */ (documents?.data ?? [])).filter((row) => row.type === "invoice" && row.payment_status !== "draft");
  const billed = own.reduce((total, row) => total + cents(row.total_excl_vat), 0n);
  const budget = cents(item.budget);
  const part = budget > 0n ? Number((billed * 100n) / budget) : 0;
  return div({ class: "tiles" },
    div({ class: "tile" }, span({ class: "soft" }, t("field.budget")), strong(null, budget > 0n ? money(item.budget) : "–")),
    div({ class: "tile" }, span({ class: "soft" }, t("project.invoiced")), strong(null, moneyOfCents(billed)), budget > 0n ? span({ class: "age-bar" }, span({ class: part > 100 ? "red" : "blue", style: { width: `${Math.min(100, part)}%` } })) : null),
    div({ class: "tile" }, span({ class: "soft" }, t("project.hours")), strong(null, hours(worked.all)), worked.all ? span({ class: "soft" }, t("project.of_which", { hours: hours(worked.approved) })) : null));
}

/** @param {{ project: string, row: Item, edits: boolean, free: boolean }} properties `free`: its invoice lets it go. */
function HourLine({ project, row, edits, free }) {
  const path = `/v1/projects/${project}/hours/${row.id}`;
  /** @param {string} name */
  const act = (name) => void post(`${path}/${name}`, undefined).catch(sayError);
  const reject = () => rejectHours([row], (reason) => post(`${path}/reject`, reason));
  const invoice = row.meta?.invoice_id;
  /** @param {string} title @param {string} text @param {Record<string, unknown>} which */
  const release = (title, text, which) => confirm({ title, text, action: title, run: async () => { await post(`/v1/invoices/${invoice}/release-hours`, which); say(t("bill.released")); } });
  const billed = !invoice ? null : tables.invoices && can(tables.invoices, "get") ? a({ key: "invoice", href: `${tables.invoices.address}/${invoice}` }, t("bill.on")) : t("bill.on");
  return li(null, div(null, div(null, row.activity_name || t("project.work")), div({ class: "soft" }, nearDay(row.date), billed ? [" · ", billed] : null), h(Why, { entry: row })), span({ class: "line-end" }, h(Pill, { table: "hours", field: "status", value: row.status }), strong({ class: "amount" }, hours(row.minutes)),
    edits && free ? h(Menu, { label: t("more"), name: `${t("more")}: ${row.activity_name || t("project.work")}`, icon: "more", quiet: true, items: [
      { label: t("bill.release"), icon: "left", run: () => release(t("bill.release"), t("bill.release_text", { hours: hours(row.minutes) }), { ids: [row.id] }) },
      { label: t("bill.release_all"), icon: "left", run: () => release(t("bill.release_all"), t("bill.release_all_text"), {}) },
    ] }) : edits && row.status !== "approved" ? h(Menu, { label: t("more"), icon: "more", quiet: true, items: [
      { label: t("hours.submit"), icon: "send", hidden: row.status === "submitted", run: () => act("submit") }, { label: t("action.approve"), icon: "check", hidden: row.status !== "submitted", run: () => act("approve") }, { label: t("hours.reject"), icon: "close", hidden: row.status !== "submitted", run: reject }, { label: t("hours.take_back"), icon: "left", hidden: row.status !== "submitted", run: () => act("withdraw") },
      { label: t("delete"), icon: "trash", danger: true, run: () => deleteLater(t("deleted", { name: hours(row.minutes) }), row.id, path) },
    ] }) : null));
}

/** Why hours were rejected, if somebody said so.
 * @param {{ entry: Item, about?: string }} properties */
export const Why = ({ entry, about = "" }) => entry.status === "rejected" && entry.meta?.rejected_reason ? p({ class: "wrong" }, about, entry.meta.rejected_reason) : null;

/** @param {Item[]} entries @param {(body: { reason?: string }) => Promise<unknown>} run */
export const rejectHours = (entries, run) => openDialog(({ close }) => h(RejectHours, { entries, run, close }));

/** @param {{ entries: Item[], run: (body: { reason?: string }) => Promise<unknown>, close: () => void }} properties */
function RejectHours({ entries, run, close }) {
  const draft = useTyped(`reject ${entries[0]?.id}`, { reason: "" });
  const reason = draft.values.reason.trim();
  return h(Dialog, { title: t("hours.reject"), action: t("hours.reject"), danger: true, close, run: () => run(reason ? { reason } : {}), draft },
    p(null, t("approve.reject_text", { hours: hours(entries.reduce((sum, entry) => sum + entry.minutes, 0)) })),
    div({ class: "field" }, label({ for: "reject-reason" }, t("hours.reason")), h(TextBox, { id: "reject-reason", value: draft.values.reason, length: 255, onChange: (value) => draft.set({ reason: value }) })));
}

/** @param {{ project: string, close: () => void }} properties */
function LogHours({ project, close }) {
  const draft = useTyped(`hours ${project}`, { date: today(), time: "", activity: "" });
  const { date, time, activity } = draft.values;
  const key = useMemo(formKey, []);
  const minutes = readMinutes(time);
  const tooMany = (minutes ?? 0) > 24 * 60;
  const run = async () => { await post(`/v1/projects/${project}/hours`, { date, minutes, user_id: me.value.user.id, ...(activity ? { activity_name: activity } : {}) }, { key }); say(t("saved")); };
  return h(Dialog, { title: t("project.log"), action: t("save"), close, run, draft, disabled: !minutes || !date || tooMany },
    div({ class: "fields" }, div({ class: "field" }, label({ for: "log-time" }, t("table.hours", { n: 2 })), input({ id: "log-time", type: "text", value: time, placeholder: "1,5 · 1:30", "aria-invalid": (time !== "" && !minutes) || tooMany || undefined, onInput: (event) => draft.set({ time: event.currentTarget.value }) }), minutes ? p({ class: tooMany ? "wrong" : "help" }, tooMany ? t("hours.too_many") : hours(minutes)) : null),
      div({ class: "field" }, label({ for: "log-date" }, t("field.date")), h(DayBox, { id: "log-date", value: date, onChange: (value) => draft.set({ date: value }) }))),
    div({ class: "field" }, label({ for: "log-activity" }, t("field.activity_name")), h(TextBox, { id: "log-activity", value: activity, length: 255, onChange: (value) => draft.set({ activity: value }) })));
}

/** Reads 1,5 and 1:30 as minutes, also as 1u30 or 1h30; null if it is none of these. After a point, quarters of an hour are
 * minutes: 8.30 is half past, as on a clock, and 8.50 is eight and a half.
 * @param {string} typed @returns {number | null} */
export function readMinutes(typed) {
  const clock = /^(\d{1,3}) *(?:[:uh] *([0-5]\d)?|\.(15|30|45)) *(?:m|min)?\.?$/i.exec(typed.trim());
  if (clock) return Number(clock[1]) * 60 + Number(clock[2] ?? clock[3] ?? 0);
  const read = readNumber(typed);
  return "value" in read && read.value !== "" && Number(read.value) >= 0 ? Math.round(Number(read.value) * 60) : null;
}
