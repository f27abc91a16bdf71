// Direct-debit files for the bank: what was collected when, and a new file of everything that waits.
import { useMemo, useState } from "preact/hooks";
import { ApiError, formKey, post, useLoad } from "../api.js";
import { Dialog, openDialog } from "../dialog.js";
import { DayBox } from "../field.js";
import { count, day, dayOf, money, nearDay } from "../format.js";
import { a, details, div, fieldset, h, input, label, legend, li, p, span, strong, summary, table as tableElement, tbody, td, th, thead, tr, ul } from "../html.js";
import { useIdentity } from "../identity.js";
import { useKeys } from "../keys.js";
import { Button, Empty, Head, Problem, Skeleton, say } from "../parts.js";
import { can } from "../schema.js";
import { choiceName, errorText, said, t, tableName } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table }} properties */
export function Batches({ table }) {
  const loaded = useLoad(`${table.path}?per_page=100`);
  const settings = useLoad("/v1/settings").answer?.data;
  const missing = useMissing();
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const waiting = waitingText(useLoad(settings?.provider === "manual" ? NEXT : null).answer?.data);
  const add = () => openDialog(({ close }) => h(New, { table, close }));
  const adds = can(table, "create") && settings?.provider === "manual";
  useKeys(adds ? [{ key: "n n", label: t("new.batches"), run: add }] : []);
  return div({ class: "page" },
    h(Head, { title: tableName("batches"), over: a({ href: "/subscriptions" }, tableName("subscriptions")) }, adds ? h(Button, { primary: true, icon: "plus", onClick: add }, t("new.batches")) : null),
    settings && settings.provider !== "manual" ? div({ class: "notice calm" }, span(null, t(settings.provider === "mollie" ? "batches.by_mollie" : "batches.by_sandbox")), h(Button, { small: true, href: "/settings/payments" }, t("menu.settings"))) : null,
    adds && missing.length > 0 ? h(Missing, { missing }) : null,
    waiting ? div({ class: "notice calm", role: "status" }, span(null, waiting)) : null,
    loaded.error && !loaded.answer ? h(Problem, { error: loaded.error, retry: loaded.reload }) : null,
    !loaded.answer && !loaded.error ? div({ class: "card" }, h(Skeleton, { rows: 4 })) : null,
    loaded.answer && rows.length === 0 ? div({ class: "card" }, h(Empty, { icon: "pay", title: t("batches.none"), text: t("batches.none_text") }, adds ? h(Button, { primary: true, icon: "plus", onClick: add }, t("new.batches")) : null)) : null,
    rows.length > 0 ? div({ class: "card list" }, tableElement({ class: "table plain-rows" },
      thead(null, tr(null, th({ scope: "col" }, t("field.collection_date")), th({ scope: "col" }, t("field.scheme")), th({ scope: "col", class: "number" }, t("field.count")), th({ scope: "col", class: "number amount" }, t("field.amount")), th({ scope: "col", class: "when" }, t("field.created_at")), th({ scope: "col", class: "button-column" }, span({ class: "hidden" }, t("download"))))),
      tbody(null, rows.map((row) => tr({ key: row.id },
        td({ class: "card-title" }, strong(null, day(row.collection_date)), div({ class: "soft mono" }, row.message_id)), td({ class: "card-line-2" }, choiceName("batches", "scheme", row.scheme)),
        td({ class: "number card-none" }, count(row.count)), td({ class: "number card-end" }, money(row.amount)), td({ class: "when card-none" }, nearDay(dayOf(row.created_at))),
        td({ class: "card-status" }, h(Button, { small: true, icon: "download", href: contentOf(row), download: `${row.message_id || "incasso"}.xml` }, t("download")))))))) : null);
}

/** What the next file contains. */
const NEXT = "/v1/direct-debit/batches/waiting";

/** @param {Item | undefined} next */
const waitingText = (next) => (next && next.count > 0 ? t(next.has_more ? "batches.waiting_more" : "batches.waiting", { n: next.count, count: count(next.count), amount: money(next.amount) }) : "");

/** @param {Item} row */
const contentOf = (row) => `/console/v1/direct-debit/batches/${row.id}/content`;

/** What a file cannot do without and the account does not have: the creditor identifier, its own IBAN.
 * @returns {("creditor" | "iban")[]} */
function useMissing() {
  const settings = useLoad("/v1/settings").answer?.data;
  const identity = useIdentity();
  return [...(settings && !settings.creditor_id ? [/** @type {const} */ ("creditor")] : []), ...(identity && !identity.iban ? [/** @type {const} */ ("iban")] : [])];
}

/** @param {{ missing: ("creditor" | "iban")[], close?: () => void }} properties */
const Missing = ({ missing, close }) => {
  const own = useIdentity();
  return div({ class: "notice", role: "alert" }, div(null, missing.map((one) => div({ key: one }, t(`batches.no_${one}`), " ",
  a({ href: one === "creditor" ? "/settings/payments" : own ? `/settings/corporate-identities/${own.id}/edit#f-iban` : "/settings/corporate-identities", class: "link", onClick: close }, t(`batches.give_${one}`))))));
};

/** What was left out of a file, or is in it for less, in the reader's language.
 * @param {string} warning */
function leftOut(warning) {
  const [, settled, which] = /^(\S+) was left out: (nothing of it is open|other collections have all that is open)\.$/.exec(warning) ?? [];
  if (settled) return t(which === "nothing of it is open" ? "batches.left_out_settled" : "batches.left_out_covered", { number: settled });
  const [, loose] = /^(\S+) was left out: it has no client\.$/.exec(warning) ?? [];
  if (loose) return t("batches.left_out_client", { number: loose });
  const [, reduced, less, whole, rest] = /^(\S+) is collected for (\S+) instead of (\S+): the rest (was paid or credited|is in other collections)\.$/.exec(warning) ?? [];
  if (reduced && less && whole) return t(rest === "was paid or credited" ? "batches.less_settled" : "batches.less_covered", { number: reduced, less: money(less), whole: money(whole) });
  const [, number, name, what] = /^(\S+) was left out: (.*) has no (IBAN|mandate)\.$/.exec(warning) ?? [];
  return number && name ? t(what === "IBAN" ? "batches.left_out_iban" : "batches.left_out_mandate", { number, name }) : said(warning) || warning;
}

/** How much waits, and of whom: the server names the first hundred.
 * @param {{ next: Item, close: () => void }} properties */
const Collections = ({ next, close }) => details(null, summary(null, strong(null, waitingText(next))), ul({ class: "lines" },
  next.collections.map((/** @type {Item} */ one) => li({ key: one.payment_id }, span(null, a({ href: `/invoices/${one.invoice_id}`, class: "link", onClick: close }, one.number), ` ${one.client_name}`), span({ class: "amount" }, money(one.amount)))),
  next.count > next.collections.length ? li(null, "…") : null));

/** @param {{ table: Table, close: () => void }} properties */
function New({ table, close }) {
  const missing = useMissing();
  const [refused, setRefused] = useState("");
  const [warnings, setWarnings] = useState(/** @type {string[]} */ ([]));
  const [date, setDate] = useState("");
  const [scheme, setScheme] = useState("core");
  const [made, setMade] = useState(/** @type {Item | null} */ (null));
  const key = useMemo(formKey, []);
  const next = useLoad(NEXT).answer?.data;
  if (made) return h(Dialog, { key: "made", title: t("batches.made"), action: t("once.kept"), single: true, close, run: async () => {} }, p(null, t("batches.made_text", { n: made.count, count: count(made.count), amount: money(made.amount), date: day(made.collection_date) })),
    warnings.length > 0 ? div({ class: "notice" }, ul(null, warnings.map((one) => li({ key: one }, leftOut(one))))) : null,
    div(null, h(Button, { icon: "download", href: contentOf(made), download: `${made.message_id || "incasso"}.xml` }, t("batches.download"))));
  const run = async () => {
    const body = { scheme, ...(date ? { collection_date: date } : {}) };
    setRefused("");
    const { data, meta } = await post(table.path, body, { key }).catch((problem) => {
      if (!(problem instanceof ApiError) || problem.code !== "invalid_transition") throw problem;
      // What is missing is shown above.
      setRefused(missing.length > 0 ? "" : errorText(problem));
      throw null;
    });
    setWarnings(meta.warnings ?? []);
    say(t("batches.made"));
    setMade(data);
    return new Promise(() => {});
  };
  return h(Dialog, { title: t("new.batches"), action: t("batches.make"), close, run, disabled: missing.length > 0 },
    missing.length > 0 ? h(Missing, { missing, close }) : refused ? div({ class: "notice", role: "alert" }, refused) : null, next?.count > 0 ? h(Collections, { next, close }) : null, p({ class: "soft" }, t("batches.new_text")),
    div({ class: "field" }, label({ for: "batch-date" }, t("field.collection_date")), h(DayBox, { id: "batch-date", value: date, onChange: setDate }), p({ class: "help" }, t("batches.date_help"))),
    fieldset({ class: "field choice" }, legend(null, t("field.scheme")), div({ class: "radios" }, ["core", "b2b"].map((one) => label({ key: one }, input({ type: "radio", name: "scheme", checked: scheme === one, onChange: () => setScheme(one) }), span(null, choiceName("batches", "scheme", one)))))));
}
