// What needs attention, as the overview of the server counts it: for Home and for the bell.
import { useLoad } from "./api.js";
import { count } from "./format.js";
import { h, span } from "./html.js";
import { Icon, Menu } from "./parts.js";
import { addressOf } from "./schema.js";
import { t } from "./words.js";

/** @typedef {{ name: string, count: number, amount?: number, mine?: number, capped: boolean, icon: string, tone: string, href: string, label: string }} Attention */

/** The icon and the tone of each entry; those without a line are not shown. @type {Record<string, [string, string]>} */
const LOOK = {
  invoices_overdue: ["invoices", "bad"], quotes_unanswered: ["quotes", "wait"], invoice_drafts_old: ["edit", "wait"], quote_drafts_old: ["edit", "wait"], workorder_drafts_old: ["edit", "wait"],
  deals_without_task: ["deals", "wait"], tickets_waiting: ["tickets", "wait"], runs_to_approve: ["flows", "wait"], mails_failed: ["mail", "bad"], subscriptions_with_problem: ["subscriptions", "bad"],
};

/** Everything that needs attention now; null until it is known.
 * @returns {Attention[] | null} */
export function useAttention() {
  const { answer, error } = useLoad("/v1/overview");
  if (!answer) return error ? [] : null;
  return answer.data.filter((/** @type {any} */ one) => one.count > 0 && LOOK[one.name]).map((/** @type {any} */ one) => {
    const [icon, tone] = LOOK[one.name] ?? ["alert", "calm"];
    return { ...one, icon, tone, href: addressOf(one.path) + (one.name === "deals_without_task" ? "&view=list" : ""), label: t(/** @type {any} */ (`attention.${one.name}`), { n: one.count }) };
  });
}

/** The bell in the top bar. */
export function BellMenu() {
  const all = useAttention() ?? [];
  const items = all.map((one) => ({ label: `${count(one.count)} ${one.label}`, icon: one.icon, href: one.href }));
  return h(Menu, { label: t("home.attention"), quiet: true, class: "bell", items: items.length > 0 ? items : [{ label: t("home.nothing"), icon: "check", href: "/" }] },
    h(Icon, { name: "bell" }), all.length > 0 ? span({ class: "bell-count", "aria-hidden": "true" }, String(all.length)) : null, span({ class: "hidden" }, t("home.attention")));
}
