// The dialogs of a document: send, payment, credit.
import { useMemo, useState } from "preact/hooks";
import { formKey, patch, post, useLoad } from "../api.js";
import { Dialog, openDialog, useTyped } from "../dialog.js";
import { ChoiceBox, DayBox, NumberBox, TextBox } from "../field.js";
import { money, moneyOfCents, today } from "../format.js";
import { div, h, input, label, p, span } from "../html.js";
import { cents, fromCents } from "../money.js";
import { savedHere, say, sayError } from "../parts.js";
import { tables } from "../schema.js";
import { choiceName, t } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table, id: string }} what */
export const openSend = (what) => void import("./letter.js").then(({ openLetter }) => openLetter(what), sayError);
/** @param {{ invoice: Item, payment?: Item }} what `payment`: one to correct. */
export const openPayment = (what) => openDialog(({ close }) => h(Payment, { ...what, close }));
/** @param {{ invoice: Item, etag: string }} what */
export const openCredit = (what) => openDialog(({ close }) => h(Credit, { ...what, close }));

/** The open amount of an invoice, in cents.
 * @param {Item} invoice */
export const openCents = (invoice) => cents(invoice.total_incl_vat) - cents(invoice.meta?.credited_amount) - cents(invoice.meta?.paid_amount);

const PENDING = ["created", "open", "pending", "authorized"];
/** Whether a payment is a direct debit: the bank or the provider transfers it.
 * @param {Item} payment */
export const isCollected = (payment) => payment.type === "online" && payment.method === "banktransfer";
/** Whether a person recorded it, who can make a mistake; the others are what a bank or a provider says.
 * @param {Item} payment */
export const isRecorded = (payment) => payment.type === "manual";
/** Whether a direct debit is on its way.
 * @param {Item} payment */
export const isPending = (payment) => isCollected(payment) && PENDING.includes(payment.status);
/** The direct debit of an invoice that is on its way.
 * @param {string} id @returns {Item | undefined} */
export const usePending = (id) => /** @type {Item[]} */ (useLoad(`/v1/invoices/${id}/payments`, { typing: true }).answer?.data ?? []).find(isPending);

/** @param {{ invoice: Item, payment?: Item, close: () => void }} properties */
function Payment({ invoice: given, payment, close }) {
  const invoice = /** @type {Item} */ (useLoad(`/v1/invoices/${given.id}`, { typing: true }).answer?.data ?? given);
  const collecting = usePending(given.id);
  const open = openCents(invoice) + (payment?.status === "paid" ? cents(payment.amount) : 0n);
  const draft = useTyped(`payment ${payment?.id ?? given.id}`, { amount: /** @type {string | null} */ (payment ? fromCents(cents(payment.amount)) : null), date: payment?.date ?? today(), method: payment?.method ?? "banktransfer", reference: payment?.external_id ?? "" });
  const { amount: typed, date, method, reference } = draft.values;
  // Until somebody types, the amount is what is open now.
  const amount = typed ?? (open > 0n ? fromCents(open) : "");
  const key = useMemo(formKey, []);
  const methods = tables.payments?.fields.find((field) => field.name === "method")?.choices ?? [];
  const rest = open - cents(amount);
  const run = async () => {
    const path = `/v1/invoices/${invoice.id}/payments`;
    const body = { amount, date, method, ...(reference || payment ? { external_id: reference.trim() } : {}) };
    if (payment) await patch(`${path}/${payment.id}`, body);
    else await post(path, body, { key });
    say(payment ? t("saved") : t("payment.done", { amount: money(amount) }));
  };
  return h(Dialog, { title: t(payment ? "payment.edit" : "payment.title"), action: t(payment ? "save" : "payment.record"), close, run, draft, disabled: !amount || !date },
    collecting ? div({ class: "notice", role: "alert" }, span(null, t("payment.pending", { amount: money(collecting.amount) }))) : null,
    div({ class: "field" }, label({ for: "pay-amount" }, t("field.amount")), h(NumberBox, { id: "pay-amount", value: amount, decimals: 2, mark: "€", onChange: (value) => draft.set({ amount: value }) }),
      p({ class: rest < 0n ? "wrong" : "help" }, rest < 0n ? t("payment.too_much", { amount: moneyOfCents(-rest) }) : rest > 0n ? t("payment.remains", { amount: moneyOfCents(rest) }) : t("payment.settles"))),
    div({ class: "fields" },
      div({ class: "field" }, label({ for: "pay-date" }, t("field.date")), h(DayBox, { id: "pay-date", value: date, onChange: (value) => draft.set({ date: value }) })),
      div({ class: "field" }, label({ for: "pay-method" }, t("field.method")), h(ChoiceBox, { id: "pay-method", value: method, onChange: (value) => draft.set({ method: value }), options: methods.map((one) => /** @type {[string, string]} */ ([one, choiceName("payments", "method", one)])) }))),
    div({ class: "field" }, label({ for: "pay-reference" }, t("field.reference")), h(TextBox, { id: "pay-reference", value: reference, length: 255, onChange: (value) => draft.set({ reference: value }) })));
}

/** @param {{ invoice: Item, etag: string, close: () => void }} properties */
function Credit({ invoice, etag, close }) {
  const rows = /** @type {Item[]} */ (invoice.rows ?? []);
  const [chosen, setChosen] = useState(/** @type {ReadonlySet<number>} */ (new Set(rows.map((_, place) => place).filter((place) => !rows[place]?.credited))));
  const key = useMemo(formKey, []);
  const all = chosen.size === rows.filter((row) => !row.credited).length;
  const sum = rows.filter((_, place) => chosen.has(place)).reduce((total, row) => total + cents(row.total_incl_vat), 0n);
  const run = async () => {
    const here = savedHere();
    const answer = await post(`/v1/invoices/${invoice.id}/credit`, all ? { credit_all: true } : { credit_all: false, row_indexes: [...chosen].sort((one, other) => one - other) }, { key, etag });
    here.open(`/invoices/${answer.data.id}`, answer, { text: t("credit.done"), replace: false });
  };
  /** @param {number} place */
  const toggle = (place) => { const next = new Set(chosen); if (!next.delete(place)) next.add(place); setChosen(next); };
  return h(Dialog, { title: t("credit.title", { number: invoice.number }), action: t("action.credit"), danger: true, close, run, disabled: chosen.size === 0 },
    p(null, t("credit.text")),
    div({ class: "pick-rows" }, rows.map((row, place) => label({ key: place, class: row.credited ? "soft" : "" },
      input({ type: "checkbox", checked: chosen.has(place), disabled: row.credited, onChange: () => toggle(place) }), span(null, row.name, row.credited ? ` (${t("status.credited").toLowerCase()})` : ""), span({ class: "amount" }, money(row.total_incl_vat))))),
    div({ class: "pick-sum" }, span(null, t("credit.sum")), span({ class: "amount" }, moneyOfCents(sum))));
}
