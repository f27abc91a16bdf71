// Home: what needs attention, each with a number and a link; money; tasks of today. An empty account sees its first steps.
import { useEffect, useState } from "preact/hooks";
import { get, post, useLoad } from "../api.js";
import { BarChart } from "../chart.js";
import { daysUntil, moneyOfCents, nearDay, plusDays, today } from "../format.js";
import { a, button, div, h, li, ol, p, span, strong, ul } from "../html.js";
import { useKeys } from "../keys.js";
import { cents } from "../money.js";
import { Card, Head, Icon, Skeleton, say, sayError } from "../parts.js";
import { go } from "../router.js";
import { may, me, tables } from "../schema.js";
import { language, t } from "../words.js";
import { LinkName, RelatedLine } from "../value.js";

/** @typedef {import("../api.js").Item} Item */
/** @typedef {{ key: string, icon: string, path: string, href: string, scope: string, tone: string }} Watched */

/** @returns {Watched[]} */
const watched = () => {
  const week = plusDays(today(), -7);
  return [
    { key: "overdue", icon: "invoices", path: "/v1/invoices?payment_status=overdue", href: "/invoices?payment_status=overdue", scope: "invoices.read", tone: "bad" },
    { key: "quotes", icon: "quotes", path: "/v1/quotes?payment_status=open", href: "/quotes?payment_status=open", scope: "invoices.read", tone: "wait" },
    { key: "drafts", icon: "edit", path: `/v1/invoices?payment_status=draft&created_to=${week}`, href: `/invoices?payment_status=draft&created_to=${week}`, scope: "invoices.read", tone: "wait" },
    { key: "tickets_new", icon: "tickets", path: "/v1/tickets?status=New", href: "/tickets?status=New", scope: "tickets.read", tone: "wait" },
    { key: "tickets_open", icon: "tickets", path: "/v1/tickets?status=Open", href: "/tickets?status=Open", scope: "tickets.read", tone: "wait" },
    { key: "runs", icon: "flows", path: "/v1/automation/runs?status=pending_approval", href: "/runs?status=pending_approval", scope: "automation.read", tone: "wait" },
    { key: "runs_failed", icon: "flows", path: "/v1/automation/runs?status=failed", href: "/runs?status=failed", scope: "automation.read", tone: "bad" },
  ];
};

export function Home() {
  const items = watched().filter((item) => may(item.scope));
  const totals = items.map((item) => ({ ...item, answer: useLoad(`${item.path}&per_page=${item.key === "overdue" ? 100 : 1}`).answer }));
  const shown = totals.filter((item) => (item.answer?.meta.total ?? 0) > 0);
  const clients = useLoad(may("relations.read") ? "/v1/clients?per_page=1" : null).answer?.meta.total;
  const invoices = useLoad(may("invoices.read") ? "/v1/invoices?per_page=6" : null).answer;
  const ready = totals.every((item) => item.answer);
  useKeys(shown.slice(0, 9).map((item, place) => ({ key: String(place + 1), label: label(item.key), run: () => go(item.href) })));
  const first = String(me.value.user.name ?? "").split(" ")[0] ?? "";
  return div({ class: "page home" },
    h(Head, { title: t("home.hello", { name: first }), over: new Intl.DateTimeFormat(language === "nl" ? "nl-NL" : "en-GB", { weekday: "long", day: "numeric", month: "long", timeZone: "UTC" }).format(new Date(today())) }),
    clients === 0 || invoices?.meta.total === 0 ? h(FirstSteps, { clients: clients ?? 0, invoices: invoices?.meta.total ?? 0 }) : null,
    !ready ? div({ class: "attention waiting" }, h(Skeleton, { rows: 2 })) : shown.length === 0 ? div({ class: "card all-good" }, h(Icon, { name: "check" }), t("home.nothing")) : ol({ class: "attention", "aria-label": t("home.attention") }, shown.map((item) => li({ key: item.key },
      a({ href: item.href, class: `attention-item ${item.tone}` }, span({ class: "attention-icon" }, h(Icon, { name: item.icon })), strong(null, String(item.answer?.meta.total)), span(null, label(item.key)),
        item.key === "overdue" ? span({ class: "amount" }, moneyOfCents(sum(item.answer?.data ?? []))) : null)))),
    div({ class: "columns" },
      div({ class: "column-main" }, may("invoices.read") ? h(Revenue, null) : null, invoices && invoices.data.length > 0 ? h(Card, { title: t("home.recent"), actions: a({ href: "/invoices" }, t("tab.all")) }, ul({ class: "related" }, invoices.data.map((/** @type {Item} */ row) => li({ key: row.id }, a({ href: `/invoices/${row.id}` }, tables.invoices ? h(RelatedLine, { table: tables.invoices, row }) : null))))) : null),
      div({ class: "column-side" }, may("invoices.read") ? h(OpenByAge, null) : null, may("tasks.read") ? h(Tasks, null) : null)));
}

/** @param {Item[]} rows */
const sum = (rows) => rows.reduce((total, row) => total + cents(row.total_incl_vat), 0n);

/** @param {string} key */
const label = (key) => t(/** @type {any} */ (`home.${key}`));

/** @param {{ clients: number, invoices: number }} properties */
function FirstSteps({ clients, invoices }) {
  const steps = [
    { done: false, href: "/settings/corporate-identities", text: t("home.step_identity") }, { done: clients > 0, href: "/clients/new", text: t("home.step_client") },
    { done: invoices > 0, href: "/invoices/new", text: t("home.step_invoice") }, { done: false, href: "/settings/email-domains", text: t("home.step_mail") },
  ];
  return h(Card, { title: t("home.start") }, ol({ class: "steps" }, steps.map((step, place) => li({ key: place, class: step.done ? "done" : "" }, span({ class: "step-mark" }, step.done ? h(Icon, { name: "check" }) : String(place + 1)), a({ href: step.href }, step.text)))));
}

const MAX_PAGES = 5;

/** Invoices of the last twelve months, per month. Accounts with very many invoices need a report of the server.
 * @returns {{ month: string, cents: bigint }[] | null} */
function useRevenue() {
  const [months, setMonths] = useState(/** @type {{ month: string, cents: bigint }[] | null} */ (null));
  useEffect(() => {
    let current = true;
    const last = today().slice(0, 7);
    const all = Array.from({ length: 12 }, (_, back) => monthBefore(last, 11 - back));
    (async () => {
      /** @type {Map<string, bigint>} */
      const sums = new Map(all.map((month) => [month, 0n]));
      for (let page = 1; page <= MAX_PAGES; page++) {
        const { data, meta } = await get(`/v1/invoices?date_from=${all[0]}-01&per_page=100&page=${page}`, { quiet: true });
        if (meta.pages > MAX_PAGES) return;
        for (const row of data) {
          const month = row.invoice_date.slice(0, 7);
          if (row.payment_status !== "draft" && sums.has(month)) sums.set(month, (sums.get(month) ?? 0n) + cents(row.total_excl_vat));
        }
        if (page >= meta.pages) break;
      }
      if (current) setMonths(all.map((month) => ({ month, cents: sums.get(month) ?? 0n })));
    })().catch(() => {});
    return () => { current = false; };
  }, []);
  return months;
}

/** @param {string} month @param {number} back */
function monthBefore(month, back) {
  const place = Number(month.slice(0, 4)) * 12 + Number(month.slice(5)) - 1 - back;
  return `${Math.floor(place / 12)}-${String((place % 12) + 1).padStart(2, "0")}`;
}

function Revenue() {
  const months = useRevenue();
  const name = new Intl.DateTimeFormat(language === "nl" ? "nl-NL" : "en-GB", { month: "short", timeZone: "UTC" });
  const total = (months ?? []).reduce((all, one) => all + one.cents, 0n);
  return h(Card, { title: t("home.revenue"), actions: months ? span({ class: "soft" }, t("home.revenue_total", { amount: moneyOfCents(total) })) : null, class: "chart-card" },
    months ? h(BarChart, { title: t("home.revenue"), unit: t("field.total_excl_vat"), bars: months.map((one) => ({ label: name.format(new Date(`${one.month}-01`)).replace(".", ""), value: Math.max(0, Number(one.cents) / 100), shown: moneyOfCents(one.cents) })) }) : h(Skeleton, { rows: 6 }));
}

function OpenByAge() {
  const answers = ["open", "partial", "overdue"].map((status) => useLoad(`/v1/invoices?payment_status=${status}&per_page=100`).answer);
  const rows = answers.flatMap((answer) => /** @type {Item[]} */ (answer?.data ?? []));
  const ages = /** @type {[string, (late: number) => boolean, string][]} */ ([[t("home.not_due"), (late) => late <= 0, "blue"], [t("home.late_30"), (late) => late > 0 && late <= 30, "ochre"], [t("home.late_60"), (late) => late > 30 && late <= 60, "ochre"], [t("home.late_more"), (late) => late > 60, "red"]]);
  const sums = ages.map(([name, fits, tone]) => ({ name, tone, cents: sum(rows.filter((row) => row.due_date && fits(-daysUntil(row.due_date)))) }));
  const top = sums.reduce((most, one) => (one.cents > most ? one.cents : most), 1n);
  return h(Card, { title: t("home.open"), actions: strong(null, moneyOfCents(sum(rows))) }, ul({ class: "ages" }, sums.map((one) => li({ key: one.name }, span(null, one.name), span({ class: "amount" }, moneyOfCents(one.cents)),
    span({ class: "age-bar" }, span({ class: one.tone, style: { width: `${Number((one.cents * 100n) / top)}%` } }))))));
}

function Tasks() {
  const loaded = useLoad(`/v1/tasks?status=open&deadline_to=${plusDays(today(), 7)}&sort=deadline&order=asc&per_page=8`);
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []).filter((row) => row.deadline);
  /** @param {Item} task */
  const tick = async (task) => {
    try {
      await post(`/v1/tasks/${task.id}/complete`, undefined);
      say(t("home.task_done", { title: task.title }), { undo: () => void post(`/v1/tasks/${task.id}/reopen`, undefined).catch(sayError) });
    } catch (error) { sayError(error); }
  };
  return h(Card, { title: t("home.tasks"), actions: a({ href: "/tasks?status=open" }, t("tab.all")) }, loaded.answer && rows.length === 0 ? p({ class: "soft" }, t("empty.tasks")) : ul({ class: "tick-list" }, rows.map((task) => li({ key: task.id },
    button({ type: "button", class: "tick", "aria-label": `${t("action.tasks.complete")}: ${task.title}`, onClick: () => void tick(task) }, h(Icon, { name: "check" })),
    div(null, a({ href: `/tasks/${task.id}` }, task.title), div({ class: "soft" }, span({ class: daysUntil(task.deadline) < 0 ? "late" : "" }, daysUntil(task.deadline) === 0 ? t("time.today") : nearDay(task.deadline)), task.client_id ? [" · ", h(LinkName, { key: "client", table: "clients", id: task.client_id, plain: true })] : null))))));
}
