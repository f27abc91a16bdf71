// The page of a document: as it is printed on the left; status, money and history on the right. A draft opens in the editor.
import { useSignal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { post, useLoad } from "../api.js";
import { Refusal } from "../mailed.js";
import { Missing } from "../missing.js";
import { confirm } from "../dialog.js";
import { choose, chosen, readDraft } from "../drafts.js";
import { day, daysUntil, money, moneyOfCents, plusDays, today } from "../format.js";
import { History, useMails } from "../history.js";
import { a, button, div, h, li, p, span, strong, ul } from "../html.js";
import { useKeys } from "../keys.js";
import { Notes } from "../notes.js";
import { Paper, PdfSheet } from "../paper.js";
import { Button, Card, Facts, Head, Menu, Moment, Pill, Skeleton, deleteLater, savedHere, say } from "../parts.js";
import { place } from "../router.js";
import { can, itemPath, may, tables } from "../schema.js";
import { actionName, choiceName, doneText, fieldName, t, tableName, word } from "../words.js";
import { Editor, isDraft } from "./editor.js";
import { isCollected, isPending, isRecorded, openCents, openCredit, openPayment, openSend, usePending } from "./send.js";
import { LinkName, pdfOf, shortNumber } from "../value.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table, id: string }} properties */
export function DocumentPage({ table, id }) {
  const loaded = useLoad(itemPath(table, id));
  const typed = useSignal(useMemo(() => readDraft(place.peek().path) !== null, []));
  if (loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (!loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 12 }));
  const item = loaded.answer.data;
  // What was typed stays on the screen, even if somebody else makes the document final.
  if (can(table, "patch") && (isDraft(item) || typed.value)) return h(Editor, { table, id, typed });
  return h(Final, { table, item, etag: loaded.answer.etag });
}

/** @param {{ table: Table, item: Item, etag: string }} properties */
function Final({ table, item, etag }) {
  const mails = useMails(`${itemPath(table, item.id)}/deliveries`);
  const actions = actionsOf(table, item, etag, mails);
  const [main, ...rest] = actions;
  const pdf = pdfOf(table, item);
  useKeys([...actions.filter((action) => action.key).map((action) => ({ key: action.key ?? "", label: action.label, run: action.run })), { key: "d", label: t("document.pdf"), run: () => void open(pdf, "_blank") }]);
  return div({ class: "page document" },
    h(Head, { title: shortNumber(item.number), over: [a({ key: "list", href: table.address }, tableName(table.key)), " · ", item.title], beside: [h(Pill, { key: "status", table: table.key, field: "payment_status", value: item.payment_status }), item.is_credit ? span({ key: "credit", class: "pill calm" }, t("field.is_credit")) : null] },
      main ? h(Button, { primary: true, icon: main.icon, onClick: main.run }, main.label) : null,
      rest.slice(0, 1).map((action) => h(Button, { key: action.label, icon: action.icon, onClick: action.run }, action.label)),
      h(Menu, { label: t("more"), icon: "more", items: [...rest.slice(1), { label: t("document.pdf"), icon: "download", href: pdf, target: "_blank" }, { label: t("document.web"), icon: "link", href: item.web_url, target: "_blank", hidden: !item.web_url }] })),
    div({ class: "columns" },
      h(Sheet, { table, item, pdf }),
      div({ class: "column-side" }, table.key === "invoices" ? h(Money, { item }) : h(Answered, { table, item }), h(About, { table, item }),
        table.key === "invoices" ? h(Payments, { item }) : null, h(Mails, { mails }), table.key === "invoices" ? h(Notes, { about: "invoice_id", id: item.id }) : null, h(History, { table, item, mails }))));
}

/** The document as it is printed, or its rows; a phone shows the rows.
 * @param {{ table: Table, item: Item, pdf: string }} properties */
function Sheet({ table, item, pdf }) {
  const [shown, setShown] = useState(matchMedia("(max-width: 67.5em)").matches ? "rows" : chosen("sheet", "pdf"));
  /** @param {string} name @param {string} label */
  const one = (name, label) => button({ type: "button", "aria-pressed": shown === name, onClick: () => { setShown(name); choose("sheet", name); } }, label);
  return div({ class: "column-main" }, div({ class: "sheet-switch", role: "group", "aria-label": t("document.view") }, one("pdf", "PDF"), one("rows", t("rows.title"))),
    shown === "pdf" ? h(PdfSheet, { src: pdf, title: `${item.number}.pdf` }) : h(Paper, { table, item }));
}

/** @typedef {{ label: string, icon: string, key?: string, run: () => void, danger?: boolean }} DocumentAction */

/** The next thing first.
 * @param {Table} table @param {Item} item @param {string} etag @param {Item[]} mails @returns {DocumentAction[]} */
function actionsOf(table, item, etag, mails) {
  const status = item.payment_status;
  const path = itemPath(table, item.id);
  const has = (/** @type {string} */ name) => (table.actions ?? []).some((action) => action.name === name && may(action.scope));
  // Mail that a server only stores has reached nobody.
  const sent = item.sent_at && !(mails.length > 0 && mails.every((mail) => mail.status === "stored"));
  const send = { label: sent ? t("document.send_again") : t("action.send"), icon: "send", key: "s", run: () => openSend({ table, id: item.id }) };
  /** @param {string} name @param {string} icon @param {string} key @param {(answer: Item) => string} [made] The address of what it makes. @returns {DocumentAction} */
  const act = (name, icon, key, made) => ({ label: actionName(table.key, name), icon, key, run: () => confirm({
    title: actionName(table.key, name), text: word([`confirm.${table.key}.${name}`, `confirm.${name}`], t("confirm.text")), action: actionName(table.key, name),
    run: async () => {
      const here = savedHere();
      const answer = await post(`${path}/${name}`, undefined, { etag });
      const text = doneText(table.key, name);
      if (made) here.open(made(answer.data), answer, { text, replace: false });
      else say(text);
    },
  }) });
  const open = ["open", "partial", "overdue"].includes(status);
  /** @type {DocumentAction[]} */
  let all;
  if (table.key === "invoices") {
    const pay = { label: t("payment.title"), icon: "pay", key: "p", run: () => openPayment({ invoice: item }) };
    const credit = { label: t("action.credit"), icon: "invoices", run: () => openCredit({ invoice: item, etag }) };
    all = [...(open && item.sent_at ? [pay, send] : open ? [send, pay] : [send]), ...(has("collect") && open && !item.is_credit ? [{ label: t("action.collect"), icon: "pay", run: () => collect(item, etag) }] : []), ...(!item.is_credit && status !== "credited" ? [credit] : [])];
  } else if (table.key === "quotes") {
    const invoice = act("invoice", "invoices", "", (made) => `/invoices/${made.id ?? made.invoice_id}`);
    const project = act("project", "projects", "", (made) => `/projects/${made.id ?? made.project_id}`);
    all = status === "accepted" ? [invoice, project, send] : status === "open" ? [...(item.sent_at ? [act("accept", "check", "a"), send] : [send, act("accept", "check", "a")]), act("reject", "close", "r"), invoice] : [send];
  } else {
    all = status === "completed" ? [act("invoice", "invoices", "", (made) => `/invoices/${made.id ?? made.invoice_id}`), send] : status === "open" ? [act("complete", "check", ""), send] : [send];
  }
  return can(table, "patch") ? all : [];
}

/** Asks for the direct debit of what is open. A bank gets it with the next file.
 * @param {Item} item @param {string} etag */
function collect(item, etag) {
  confirm({ title: t("action.collect"), text: t("confirm.collect", { amount: moneyOfCents(openCents(item)), day: day(collectedOn()) }), action: t("action.collect"), run: async () => {
    const { data } = await post(`/v1/invoices/${item.id}/collect`, undefined, { etag });
    const files = data.payment?.provider === "manual" ? tables.batches : undefined;
    say(files ? t("collect.in_file") : doneText("invoices", "collect"), files ? { link: { href: files.address, label: tableName("batches") } } : {});
  } });
}

/** Two working days from today, but for holidays of banks. */
function collectedOn() {
  let on = today();
  for (let days = 0; days < 2;) { on = plusDays(on, 1); if (new Date(on).getUTCDay() % 6 !== 0) days += 1; }
  return on;
}

/** @param {{ item: Item }} properties */
function Money({ item }) {
  const open = openCents(item);
  const settled = open === 0n;
  const over = open < 0n && !item.is_credit;
  // What the business owes to its client, with or without a date.
  const refund = open < 0n && item.is_credit;
  const collecting = usePending(item.id);
  const planned = item.meta?.collection_date;
  const late = ["overdue", "partial"].includes(item.payment_status) && item.due_date ? -daysUntil(item.due_date) : 0;
  return h(Card, { class: "money-card" }, div({ class: "soft" }, settled ? t("document.settled") : over ? t("document.overpaid") : refund ? t("document.to_refund") : t("document.open")), div({ class: "big-amount" }, settled ? money(item.total_incl_vat) : moneyOfCents(over || refund ? -open : open)),
    settled || over || refund ? null : planned && daysUntil(planned) >= 0 ? p({ class: "soft" }, t("document.collecting", { day: day(planned) })) : collecting ? p({ class: "soft" }, t("payment.collecting")) : late > 0 ? p({ class: "late" }, t("document.n_days_late", { n: late })) : item.due_date ? p({ class: "soft" }, t("document.due", { day: day(item.due_date) })) : null,
    h(Facts, { facts: [[t("field.total_incl_vat"), money(item.total_incl_vat)], [t("field.paid_amount"), item.meta?.paid_amount ? money(item.meta.paid_amount) : ""], [t("field.credited_amount"), item.meta?.credited_amount ? money(item.meta.credited_amount) : ""]] }));
}

/** @param {{ table: Table, item: Item }} properties */
function Answered({ table, item }) {
  const left = item.due_date ? daysUntil(item.due_date) : 0;
  const meta = item.meta ?? {};
  return h(Card, { class: "money-card" }, div({ class: "soft" }, t("field.total_incl_vat")), div({ class: "big-amount" }, money(item.total_incl_vat)),
    table.key === "quotes" && item.payment_status === "open" ? p({ class: left < 0 ? "late" : "soft" }, left >= 0 ? t("document.n_days_left", { n: left }) : t("document.expired")) : null,
    h(Facts, { facts: [[t("field.viewed_at"), meta.viewed_at ? h(Moment, { at: meta.viewed_at }) : ""], [t("field.accepted_at"), meta.accepted_at ? h(Moment, { at: meta.accepted_at }) : ""], [t("field.accepted_by"), meta.accepted_by], [t("field.rejected_at"), meta.rejected_at ? h(Moment, { at: meta.rejected_at }) : ""]] }));
}

/** @param {{ table: Table, item: Item }} properties */
function About({ table, item }) {
  const meta = item.meta ?? {};
  /** @param {string} to @param {string | null | undefined} id */
  const link = (to, id) => (id ? h(LinkName, { table: to, id }) : "");
  return h(Card, { title: t("facts") }, h(Facts, { facts: [
    [t("field.client_id"), link("clients", item.client_id)], [fieldName(table.key, "invoice_date"), day(item.invoice_date)], [fieldName(table.key, "due_date"), day(item.due_date)],
    [t("field.reference"), meta.reference], [t("field.project_id"), link("projects", meta.project_id)], [t("field.deal_id"), link("deals", meta.deal_id)], [t("field.quote_id"), link("quotes", meta.quote_id)],
    [t("field.invoice_id"), link("invoices", meta.invoice_id)], [t("field.credited_invoice_id"), link("invoices", meta.credited_invoice_id)], [t("field.subscription_id"), link("subscriptions", meta.subscription_id)],
    [t("document.period"), meta.period_start ? `${day(meta.period_start)} – ${day(meta.period_end)}` : ""], [t("field.revision"), meta.revision > 1 ? meta.revision : ""],
  ] }));
}

/** @param {{ item: Item }} properties */
function Payments({ item }) {
  const payments = /** @type {Item[]} */ (useLoad(`/v1/invoices/${item.id}/payments`).answer?.data ?? []);
  if (payments.length === 0) return null;
  /** @param {Item} payment */
  const drop = (payment) => deleteLater(t("deleted", { name: money(payment.amount) }), payment.id, `/v1/invoices/${item.id}/payments/${payment.id}`);
  return h(Card, { title: t("table.payments", { n: 2 }) }, ul({ class: "lines" }, payments.map((payment) => {
    const method = isCollected(payment) ? "directdebit" : payment.method;
    return li({ key: payment.id },
      div(null, strong(null, money(payment.amount)), div({ class: "soft" }, day(payment.date), method ? ` · ${choiceName("payments", "method", method)}` : "", isRecorded(payment) && payment.external_id ? ` · ${payment.external_id}` : "")),
      span({ class: "line-end" }, isPending(payment) ? span({ class: "pill wait" }, t("payment.collecting")) : h(Pill, { table: "payments", field: "status", value: payment.status }),
        isRecorded(payment) && may("invoices.write") ? h(Menu, { label: t("more"), name: `${t("more")}: ${money(payment.amount)}`, icon: "more", quiet: true, items: [{ label: t("edit"), icon: "edit", run: () => openPayment({ invoice: item, payment }) }, { label: t("delete"), icon: "trash", danger: true, run: () => drop(payment) }] }) : null));
  })));
}

/** @param {{ mails: Item[] }} properties */
function Mails({ mails }) {
  if (mails.length === 0) return null;
  return h(Card, { title: t("document.mails") }, ul({ class: "lines" }, [...mails].reverse().map((mail) => li({ key: mail.id },
    div(null, div(null, mail.subject), div({ class: "soft" }, mail.recipient), h(Refusal, { mail })), div({ class: "mail-end" }, mail.status === "sent" ? span({ class: "pill good" }, choiceName("mails", "status", "sent")) : h(Pill, { table: "mails", field: "status", value: mail.status }), span({ class: "soft small" }, h(Moment, { at: mail.created_at })))))));
}
