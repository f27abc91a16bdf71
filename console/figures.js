// Figures beside the rows of a list that are no fields of its records: what is still to be paid of an invoice or by a client,
// how much of its budget a project has used. One request brings those of all rows, after the rows are drawn.
import { useMemo } from "preact/hooks";
import { useLoad } from "./api.js";
import { money, moneyOfCents } from "./format.js";
import { h, span } from "./html.js";
import { cents } from "./money.js";
import { may, valueOf } from "./schema.js";
import { AboutName } from "./value.js";
import { word } from "./words.js";

/** @typedef {import("./api.js").Item} Item */
/** @typedef {import("./schema.js").Table} Table */

/** The report of a table and the parameter with the ids. @type {Record<string, { path: string, by: string, scopes: string[] }>} */
const REPORTS = {
  invoices: { path: "/v1/reports/invoices", by: "invoice_id", scopes: ["invoices.read"] },
  clients: { path: "/v1/reports/clients", by: "client_id", scopes: ["invoices.read"] },
  projects: { path: "/v1/reports/projects", by: "project_id", scopes: ["invoices.read", "projects.read"] },
};
const MAX_IDS = 100;

/** The rows with their figures, as soon as these are there.
 * @param {Table} table @param {Item[]} rows @returns {Item[]} */
export function useFigures(table, rows) {
  const report = REPORTS[table.key];
  const ids = rows.slice(0, MAX_IDS).map((row) => row.id).sort().join();
  const { answer, loading } = useLoad(report && ids && report.scopes.every(may) ? `${report.path}?${report.by}=${ids}` : null);
  // While those of other rows are loading, the ones that are known say nothing about these.
  const figures = report && !loading ? answer : null;
  return useMemo(() => {
    if (!figures) return rows;
    const found = new Map(figures.data.map((/** @type {Item} */ one) => [one[report?.by ?? ""], one]));
    return rows.map((row) => ({ ...row, ...(table.key === "projects" ? { budget_used: found.get(row.id)?.invoiced_amount ?? 0 } : { open_amount: found.get(row.id)?.open_amount ?? 0 }) }));
  }, [figures, rows]);
}

/** What a cell shows that is more than the value of a field; undefined if it is not.
 * @param {Table} table @param {Item} row @param {string} name */
export function figure(table, row, name) {
  if (name === "open_amount") return open(row, valueOf(row, name));
  if (table.key === "projects" && name === "budget_used") return row.budget_used === undefined ? "" : h(BudgetUse, { budget: row.budget, used: row.budget_used });
  if (table.key === "subscriptions" && name === "total_incl_vat") return [money(row.total_incl_vat), span({ key: "term", class: "soft" }, ` ${word([`per.${row.term}`], "")}`)];
  if (table.key === "runs" && name === "entity_id") return [h(AboutName, { key: "about", run: row, plain: true }), row.error ? span({ key: "error", class: "late" }, ` ${row.error}`) : null];
  return undefined;
}

/** What is open; nothing is a dash, so that the amounts stand out.
 * @param {Item} row @param {any} value */
function open(row, value) {
  if (value === undefined || value === null) return "";
  return cents(value) === 0n ? span({ class: "soft" }, "–") : span({ class: row.payment_status === "overdue" ? "late" : "" }, money(value));
}

/** The part of a budget that was invoiced, as a bar and in words.
 * @param {{ budget: any, used: any }} properties */
export function BudgetUse({ budget, used }) {
  const all = cents(budget);
  const part = all > 0n ? Number((cents(used) * 100n) / all) : 0;
  if (all <= 0n) return cents(used) === 0n ? span({ class: "soft" }, "–") : moneyOfCents(cents(used));
  return span({ class: "use", title: `${money(used)} / ${money(budget)}` }, span({ class: "age-bar" }, span({ class: part > 100 ? "red" : "blue", style: { width: `${Math.min(100, Math.max(0, part))}%` } })), span({ class: "use-part" }, `${part} %`));
}
