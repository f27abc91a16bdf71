// A document as a sheet of paper: the rows and totals of the record. "Show PDF" opens what is printed.
import { useState } from "preact/hooks";
import { useLoad } from "./api.js";
import { day, decimal, money, percent, price } from "./format.js";
import { div, h, iframe, p, span, strong, table as tableElement, tbody, td, tfoot, th, thead, tr } from "./html.js";
import { Button } from "./parts.js";
import { may, me } from "./schema.js";
import { pdfOf } from "./value.js";
import { fieldName, t, tableName } from "./words.js";

/** @typedef {import("./api.js").Item} Item */

/** @param {{ table: import("./schema.js").Table, item: Item }} properties */
export function Paper({ table, item }) {
  const rows = /** @type {Item[]} */ (item.rows ?? item.lines ?? []);
  const who = [item.client_company_name, [item.client_firstname, item.client_lastname].filter(Boolean).join(" ")].filter(Boolean);
  return div({ class: "paper" },
    div({ class: "paper-head" },
      div(null, div({ class: "paper-kind" }, item.is_credit ? t("field.is_credit") : tableName(table.key, 1)), strong(null, item.title)),
      div({ class: "paper-from" }, strong(null, useSender(item)), item.id ? h(Button, { small: true, icon: "download", href: pdfOf(table, item), target: "_blank" }, t("document.pdf")) : null)),
    div({ class: "paper-facts" },
      div(null, span({ class: "soft" }, t("field.client_id")), who.map((line, place) => (place === 0 ? strong({ key: line }, line) : span({ key: line }, line))), item.meta?.client_email ? span({ class: "soft" }, item.meta.client_email) : null),
      div(null, item.number ? fact(t("field.number"), item.number) : null, fact(fieldName(table.key, "invoice_date"), day(item.invoice_date)), fact(fieldName(table.key, "due_date"), day(item.due_date)), item.meta?.reference ? fact(t("field.reference"), item.meta.reference) : null)),
    tableElement({ class: "paper-rows" },
      thead(null, tr(null, th({ scope: "col" }, t("rows.description")), th({ scope: "col", class: "number" }, t("rows.quantity")), th({ scope: "col", class: "number" }, t("field.price")), th({ scope: "col", class: "number vat" }, t("field.vat_rate")), th({ scope: "col", class: "number" }, t("field.amount")))),
      tbody(null, rows.map((row, place) => tr({ key: place, class: row.credited ? "credited" : "" },
        td(null, div(null, row.name ?? row.title), row.description ? div({ class: "soft pre" }, row.description) : null), td({ class: "number" }, decimal(row.quantity), row.unit ? ` ${row.unit}` : ""), td({ class: "number" }, price(row.unit_price)), td({ class: "number vat" }, percent(row.vat_rate)), td({ class: "number" }, money(row.total_excl_vat))))),
      tfoot(null, total(t("field.subtotal"), money(item.total_excl_vat)), total(t("field.vat_amount"), money(item.vat_amount)), total(t("field.total_incl_vat"), money(item.total_incl_vat), "grand"))),
    item.meta?.notes ? p({ class: "paper-notes" }, item.meta.notes) : null);
}

/** The name of its corporate identity, as the PDF has it.
 * @param {Item} item @returns {string} */
function useSender(item) {
  const all = /** @type {Item[]} */ (useLoad(may("settings.read") ? "/v1/corporate-identities" : null).answer?.data ?? []);
  const own = all.find((one) => one.id === item.meta?.corporate_identity_id) ?? all.find((one) => one.is_default) ?? all[0];
  return own?.name || me.value.account.name;
}

/** @param {string} name @param {string} value */
const fact = (name, value) => div({ class: "paper-fact" }, span({ class: "soft" }, name), span(null, value));

/** @param {string} name @param {string} value @param {string} [extra] */
const total = (name, value, extra = "") => tr({ class: extra }, td({ colSpan: 4 }, name), td({ class: "number" }, value));

/** Browsers show an empty dark viewer for a moment between the end of loading and the first page. */
const DRAWN_AFTER = 500;

/** The PDF of a document. The browser's viewer is dark until the page is there, so it is hidden until then.
 * @param {{ src: string, title: string }} properties */
export function PdfSheet({ src, title }) {
  const [ready, setReady] = useState(false);
  return div({ class: "sheet" }, iframe({ key: src, class: ready ? "pdf" : "pdf waiting", src: `${src}#toolbar=0&navpanes=0&view=FitH`, title, onLoad: () => setTimeout(() => setReady(true), DRAWN_AFTER) }));
}
