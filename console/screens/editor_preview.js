// The preview of a document that is being edited: beside the form where there is room for it, else in a dialog.
import { signal } from "@preact/signals";
import { Dialog, openDialog } from "../dialog.js";
import { div, h } from "../html.js";
import { fromCents, lineTotal } from "../money.js";
import { Paper, PdfSheet } from "../paper.js";
import { onPhone } from "../parts.js";
import { isBlank, rowBody } from "../rows.js";
import { linked, pdfOf } from "../value.js";
import { t } from "../words.js";

/** @typedef {import("../api.js").Item} Item */
/** @typedef {{ table: import("../schema.js").Table, item: Item | null, values: import("@preact/signals").Signal<Item>, rows: import("@preact/signals").Signal<import("../rows.js").EditedRow[]>, rates: import("../rows.js").Rate[],
 *   totals: import("@preact/signals").ReadonlySignal<import("../money.js").Totals> }} Sheet What stands in the editor. */

const roomy = matchMedia("(min-width: 105em)");
/** Whether there is room for a page beside the form, as the style has it. */
const hasRoom = signal(roomy.matches);
roomy.addEventListener("change", () => { hasRoom.value = roomy.matches; });

/** @param {{ sheet: Sheet }} properties */
export function Beside({ sheet }) {
  if (!hasRoom.value) return null;
  return sheet.item ? div({ class: "editor-preview" }, h(Printed, { sheet })) : div({ class: "editor-preview", role: "region", "aria-label": t("document.preview") }, h(Written, { sheet }));
}

/** @param {Sheet} sheet @param {boolean} unsaved */
export const openPreview = (sheet, unsaved) => openDialog(({ close }) => h(Dialog, { title: t("document.preview"), action: t("close"), single: true, calm: true, wide: true, class: "sheet-preview", close, run: async () => {} },
  // Only what is saved is in the PDF, and phones show none in a page.
  sheet.item && !unsaved && !onPhone.value ? h(Printed, { sheet }) : h(Written, { sheet })));

/** The page as it will be printed, as far as it is saved.
 * @param {{ sheet: Sheet }} properties */
const Printed = ({ sheet: { table, item } }) => h(PdfSheet, { src: item ? pdfOf(table, item) : "", title: t("document.preview") });

/** The rows of the preview; more would slow typing down. */
const MAX_PREVIEWED = 60;

/** A document as it looks so far: a new one has no PDF before it is saved.
 * @param {{ sheet: Sheet }} properties */
function Written({ sheet: { table, values, rows, rates, totals } }) {
  const { net, tax, gross } = totals.value;
  const client = values.value.client_id ? linked("clients", values.value.client_id).value : null;
  const shown = rows.value.filter((row) => !isBlank(row)).slice(0, MAX_PREVIEWED).map((row) => ({ name: row.name.value, ...rowBody(row, "name", rates), vat_rate: rates.find((rate) => rate.code === row.vat.value)?.rate ?? row.vat.value, total_excl_vat: fromCents(lineTotal(row.quantity.value || "1", row.price.value)) }));
  const item = { title: values.value.title || shown[0]?.name || "", number: "", invoice_date: values.value.invoice_date, due_date: values.value.due_date, rows: shown,
    client_company_name: client?.company_name ?? "", client_firstname: client?.firstname ?? "", client_lastname: client?.lastname ?? "",
    total_excl_vat: fromCents(net), vat_amount: fromCents(tax), total_incl_vat: fromCents(gross), meta: { reference: values.value.reference, notes: values.value.notes, client_email: client?.email ?? "" } };
  return h(Paper, { table, item });
}
