// The dialogs of a document: send, payment, credit.
import { useEffect, useMemo, useState } from "preact/hooks";
import { formKey, get, post } from "../api.js";
import { Dialog, openDialog } from "../dialog.js";
import { dropDraft, keepDraft, readDraft } from "../drafts.js";
import { ChoiceBox, DayBox, NumberBox, TextBox } from "../field.js";
import { money, moneyOfCents, today } from "../format.js";
import { div, h, input, label, p, span } from "../html.js";
import { cents, fromCents } from "../money.js";
import { Problem, Skeleton, say } from "../parts.js";
import { itemPath, tables } from "../schema.js";
import { choiceName, t } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table, id: string }} what */
export const openSend = (what) => openDialog(({ close }) => h(Send, { ...what, close }));
/** @param {{ invoice: Item, etag: string }} what */
export const openPayment = (what) => openDialog(({ close }) => h(Payment, { ...what, close }));
/** @param {{ invoice: Item, etag: string, done: (credit: Item) => void }} what */
export const openCredit = (what) => openDialog(({ close }) => h(Credit, { ...what, close }));

/** The open amount of an invoice, in cents.
 * @param {Item} invoice */
export const openCents = (invoice) => cents(invoice.total_incl_vat) - cents(invoice.meta?.credited_amount) - cents(invoice.meta?.paid_amount);

/** @param {{ table: Table, id: string, close: () => void }} properties */
function Send({ table, id, close }) {
  const [mail, setMail] = useState(/** @type {Item | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const key = useMemo(formKey, []);
  const draftName = `${itemPath(table, id)}/send`;
  useEffect(() => { get(`${itemPath(table, id)}/send-preview`).then((answer) => setMail({ cc: "", include_pdf: true, ...answer.data, ...readDraft(draftName)?.value }), setError); }, []);
  /** @param {string} name */
  const control = (name) => ({ id: `send-${name}`, value: mail?.[name], onChange: (/** @type {any} */ value) => { const typed = { ...mail, [name]: value }; setMail(typed); keepDraft(draftName, () => ({ to: typed.to, cc: typed.cc, subject: typed.subject, message: typed.message })); } });
  const run = async () => {
    await post(`${itemPath(table, id)}/send`, { to: mail?.to, ...(mail?.cc ? { cc: mail.cc } : {}), subject: mail?.subject, message: mail?.message, send_type: mail?.send_type, include_pdf: mail?.include_pdf }, { key });
    dropDraft(draftName);
    say(t("send.done", { to: mail?.to ?? "" }));
  };
  return h(Dialog, { title: t("send.title"), action: t("action.send"), wide: true, close, run, disabled: !mail },
    error ? h(Problem, { error }) : null, !mail && !error ? h(Skeleton, { rows: 6 }) : null,
    mail ? [
      div({ class: "fields", key: "who" },
        div({ class: "field" }, label({ for: "send-to" }, t("field.to")), h(TextBox, control("to"))),
        div({ class: "field" }, label({ for: "send-cc" }, t("field.cc")), h(TextBox, control("cc")))),
      div({ class: "field", key: "subject" }, label({ for: "send-subject" }, t("field.subject")), h(TextBox, control("subject"))),
      div({ class: "field mail-text", key: "message" }, label({ for: "send-message" }, t("send.message")), h(TextBox, { ...control("message"), long: true })),
      div({ class: "field switch", key: "pdf" }, input({ id: "send-pdf", type: "checkbox", checked: mail.include_pdf, onChange: (event) => setMail({ ...mail, include_pdf: event.currentTarget.checked }) }), label({ for: "send-pdf" }, t("send.pdf"))),
    ] : null);
}

/** @param {{ invoice: Item, etag: string, close: () => void }} properties */
function Payment({ invoice, close }) {
  const open = openCents(invoice);
  const [amount, setAmount] = useState(fromCents(open));
  const [date, setDate] = useState(today());
  const [method, setMethod] = useState("banktransfer");
  const key = useMemo(formKey, []);
  const methods = tables.payments?.fields.find((field) => field.name === "method")?.choices ?? [];
  const rest = open - cents(amount);
  const run = async () => {
    await post(`/v1/invoices/${invoice.id}/payments`, { amount, date, method }, { key });
    say(t("payment.done", { amount: money(amount) }));
  };
  return h(Dialog, { title: t("payment.title"), action: t("payment.record"), close, run, disabled: !amount },
    div({ class: "field" }, label({ for: "pay-amount" }, t("field.amount")), h(NumberBox, { id: "pay-amount", value: amount, decimals: 2, mark: "€", onChange: setAmount }),
      p({ class: rest < 0n ? "wrong" : "help" }, rest < 0n ? t("payment.too_much", { amount: moneyOfCents(-rest) }) : rest > 0n ? t("payment.remains", { amount: moneyOfCents(rest) }) : t("payment.settles"))),
    div({ class: "fields" },
      div({ class: "field" }, label({ for: "pay-date" }, t("field.date")), h(DayBox, { id: "pay-date", value: date, onChange: setDate })),
      div({ class: "field" }, label({ for: "pay-method" }, t("field.method")), h(ChoiceBox, { id: "pay-method", value: method, onChange: setMethod, options: methods.map((one) => /** @type {[string, string]} */ ([one, choiceName("payments", "method", one)])) }))));
}

/** @param {{ invoice: Item, etag: string, close: () => void, done: (credit: Item) => void }} properties */
function Credit({ invoice, etag, close, done }) {
  const rows = /** @type {Item[]} */ (invoice.rows ?? []);
  const [chosen, setChosen] = useState(/** @type {ReadonlySet<number>} */ (new Set(rows.map((_, place) => place).filter((place) => !rows[place]?.credited))));
  const key = useMemo(formKey, []);
  const all = chosen.size === rows.filter((row) => !row.credited).length;
  const sum = rows.filter((_, place) => chosen.has(place)).reduce((total, row) => total + cents(row.total_incl_vat), 0n);
  const run = async () => {
    const answer = await post(`/v1/invoices/${invoice.id}/credit`, all ? { credit_all: true } : { credit_all: false, row_indexes: [...chosen].sort((one, other) => one - other) }, { key, etag });
    say(t("credit.done"));
    done(answer.data);
  };
  /** @param {number} place */
  const toggle = (place) => { const next = new Set(chosen); if (!next.delete(place)) next.add(place); setChosen(next); };
  return h(Dialog, { title: t("credit.title", { number: invoice.number }), action: t("action.credit"), danger: true, close, run, disabled: chosen.size === 0 },
    p(null, t("credit.text")),
    div({ class: "pick-rows" }, rows.map((row, place) => label({ key: place, class: row.credited ? "soft" : "" },
      input({ type: "checkbox", checked: chosen.has(place), disabled: row.credited, onChange: () => toggle(place) }), span(null, row.name, row.credited ? ` (${t("status.credited").toLowerCase()})` : ""), span({ class: "amount" }, money(row.total_incl_vat))))),
    div({ class: "pick-sum" }, span(null, t("credit.sum")), span({ class: "amount" }, moneyOfCents(sum))));
}
