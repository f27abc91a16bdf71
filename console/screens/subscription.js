// The page of a subscription: its periods as a strip, each with its invoice; the lines; what went wrong on top.
import { useMemo, useState } from "preact/hooks";
import { formKey, post, useLoad } from "../api.js";
import { Missing } from "../missing.js";
import { Dialog, confirm, openDialog } from "../dialog.js";
import { DayBox } from "../field.js";
import { day, money, moneyOfCents, nearDay, today } from "../format.js";
import { History } from "../history.js";
import { a, div, h, label, li, ol, p, span, strong } from "../html.js";
import { useKeys } from "../keys.js";
import { Mandate } from "./mandate.js";
import { cents } from "../money.js";
import { Button, Card, Facts, Head, Pill, Skeleton, say } from "../parts.js";
import { go } from "../router.js";
import { can, itemPath, may } from "../schema.js";
import { choiceName, t, tableName, word } from "../words.js";
import { LinkName } from "../value.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** How often a year. @type {Record<string, number>} */
const A_YEAR = { weekly: 52, four_weeks: 13, monthly: 12, quarterly: 4, half_yearly: 2, yearly: 1 };

/** @param {{ table: Table, id: string }} properties */
export function SubscriptionPage({ table, id }) {
  const loaded = useLoad(itemPath(table, id));
  const of = loaded.answer?.data.client_id;
  const client = useLoad(of && may("relations.read") ? `/v1/clients/${of}` : null).answer?.data;
  const edits = can(table, "patch");
  useKeys(edits ? [{ key: "e", label: t("edit"), run: () => go(`${table.address}/${id}/edit`) }] : []);
  if (loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (!loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 10 }));
  const item = loaded.answer.data;
  const etag = loaded.answer.etag;
  return div({ class: "page" },
    h(Head, { title: item.title, over: [a({ key: "list", href: table.address }, tableName(table.key)), ` · ${item.number}`], beside: h(Pill, { table: table.key, field: "status", value: item.status }) },
      edits && item.status === "draft" ? h(Button, { primary: true, icon: "check", onClick: () => activate(item, etag) }, t("action.activate")) : null,
      edits ? h(Button, { icon: "edit", href: `${table.address}/${id}/edit` }, t("edit")) : null,
      edits && item.status === "active" ? h(Button, { onClick: () => openDialog(({ close }) => h(End, { item, etag, close })) }, t("action.deactivate")) : null),
    item.meta?.problem ? div({ class: "problem", role: "alert" }, div(null, strong(null, t("subscription.problem")), p(null, item.meta.problem))) : null,
    h(Periods, { item }),
    div({ class: "columns" },
      div({ class: "column-main" }, h(Lines, { item })),
      div({ class: "column-side" },
        h(Card, { class: "money-card" }, div({ class: "soft" }, t("subscription.total")), div({ class: "big-amount" }, money(item.total_incl_vat)),
          p({ class: "soft" }, t("subscription.yearly", { amount: moneyOfCents(cents(item.total_incl_vat) * BigInt(A_YEAR[item.term] ?? 1)) }))),
        h(Card, { title: t("facts") }, h(Facts, { facts: [[t("field.client_id"), h(LinkName, { table: "clients", id: item.client_id })], [t("field.term"), choiceName("subscriptions", "term", item.term)], [t("subscription.schedule"), scheduleText(item)],
          [t("field.start_date"), day(item.start_date)], [t("field.end_date"), day(item.end_date)], [t("field.last_generated"), day(item.last_generated)], [t("field.next_generate"), day(item.next_generate)]] })),
        client ? h(Mandate, { client }) : null,
        h(History, { table, item }))));
}

/** @param {Item} item */
function scheduleText(item) {
  const schedule = item.schedule ?? {};
  if (item.term === "weekly" || item.term === "four_weeks") return word([`weekday.${schedule.day_of_week}`], "");
  return schedule.day_of_month ? t("subscription.day_of_month", { day: schedule.day_of_month }) : "";
}

/** @param {{ item: Item }} properties */
function Periods({ item }) {
  const periods = /** @type {Item[]} */ (useLoad(`/v1/subscriptions/${item.id}/periods`).answer?.data ?? []);
  if (periods.length === 0) return null;
  return h(Card, { title: t("subscription.periods") }, ol({ class: "periods" }, periods.map((period) => li({ key: period.period_start, class: `period ${period.status}` },
    span({ class: "period-dot", "aria-hidden": "true" }), strong(null, nearDay(period.period_start)), span({ class: "soft" }, `– ${nearDay(period.period_end)}`),
    period.invoice_id ? a({ href: `/invoices/${period.invoice_id}` }, period.invoice_number) : span({ class: period.status === "upcoming" ? "soft" : "late" }, choiceName("periods", "status", period.status))))));
}

/** @param {{ item: Item }} properties */
function Lines({ item }) {
  const lines = /** @type {Item[]} */ (item.lines ?? []);
  return h(Card, { title: t("subscription.lines") }, ol({ class: "lines" }, lines.map((line, place) => li({ key: place },
    div(null, div(null, line.title), div({ class: "soft" }, [`${line.quantity} ${line.unit ?? ""}`.trim(), money(line.unit_price)].join(" × "))), span({ class: "amount" }, money(line.total_excl_vat))))),
    div({ class: "sums plain" }, div(null, span(null, t("field.subtotal")), span(null, money(item.total_excl_vat))), div(null, span(null, t("field.vat_amount")), span(null, money(item.vat_amount))), div({ class: "grand" }, span(null, t("subscription.total")), span(null, money(item.total_incl_vat)))));
}

/** @param {Item} item @param {string} etag */
function activate(item, etag) {
  confirm({ title: t("action.activate"), text: t("subscription.activate_text"), action: t("action.activate"), run: async () => { await post(`/v1/subscriptions/${item.id}/activate`, undefined, { etag }); say(t("subscription.activated")); } });
}

/** @param {{ item: Item, etag: string, close: () => void }} properties */
function End({ item, etag, close }) {
  const [date, setDate] = useState(today());
  const key = useMemo(formKey, []);
  const run = async () => { await post(`/v1/subscriptions/${item.id}/deactivate`, { subscription_end: date }, { etag, key }); say(t("subscription.ended")); };
  return h(Dialog, { title: t("subscription.end_title"), action: t("action.deactivate"), danger: true, close, run, disabled: !date }, p(null, t("subscription.end_text")),
    div({ class: "field" }, label({ for: "end-date" }, t("subscription.end_from")), h(DayBox, { id: "end-date", value: date, onChange: setDate })));
}
