// Home: what needs attention, each with a number and a link; money; tasks of today. An empty account sees its first steps.
import { useSignal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { post, useLoad } from "../api.js";
import { useAttention } from "../attention.js";
import { choose, chosen } from "../drafts.js";
import { count, daysUntil, money, nearDay, plusDays, today } from "../format.js";
import { a, button, div, h, li, ol, p, span, strong, ul } from "../html.js";
import { useKeys } from "../keys.js";
import { Card, Head, Icon, Skeleton, say, sayError } from "../parts.js";
import { go } from "../router.js";
import { may, me, tables } from "../schema.js";
import { language, loadRest, t } from "../words.js";
import { LinkName, RelatedLine } from "../value.js";

/** @typedef {import("../api.js").Item} Item */

/** Whoever has so many invoices is not new. */
const MANY = 25;

export function Home() {
  const shown = useAttention();
  const clients = useLoad(may("relations.read") ? "/v1/clients?per_page=1" : null).answer?.meta.total;
  const invoices = useLoad(may("invoices.read") ? "/v1/invoices?per_page=6" : null).answer;
  useKeys((shown ?? []).slice(0, 9).map((item, place) => ({ key: String(place + 1), label: item.label, run: () => go(item.href) })));
  const first = String(me.value.user.name ?? "").split(" ")[0] ?? "";
  const fresh = clients === 0 || invoices?.meta.total === 0;
  // The steps stay until they are done or hidden.
  const hidden = useSignal(chosen("start", "") === "hidden");
  const early = fresh || (!hidden.value && (invoices?.meta.total ?? MANY) < MANY);
  return div({ class: "page home" },
    h(Head, { title: t("home.hello", { name: first }), tab: t("menu.home"), over: new Intl.DateTimeFormat(language === "nl" ? "nl-NL" : "en-GB", { weekday: "long", day: "numeric", month: "long", timeZone: "UTC" }).format(new Date(today())) }),
    early ? h(Start, { clients: clients ?? 0, invoices: invoices?.meta.total ?? 0, hide: fresh ? undefined : () => { hidden.value = true; choose("start", "hidden"); } }) : null,
    !shown ? div({ class: "attention waiting" }, h(Skeleton, { rows: 2 })) : shown.length === 0 ? (fresh ? null : div({ class: "card all-good" }, h(Icon, { name: "check" }), t("home.nothing"))) : ol({ class: "attention", "aria-label": t("home.attention") }, shown.map((item) => li({ key: item.name },
      a({ href: item.href, class: `attention-item ${item.tone}` }, span({ class: "attention-icon" }, h(Icon, { name: item.icon })), span({ class: "attention-number" }, strong(null, item.capped ? `${count(item.count)}+` : count(item.count)), " ",
        item.amount ? span({ class: "amount" }, money(item.amount)) : item.mine ? span({ class: "amount soft" }, t("attention.mine", { n: item.mine })) : null), span({ class: "soft" }, item.label))))),
    fresh && invoices?.meta.total === 0 ? null : div({ class: "columns" },
      div({ class: "column-main" }, may("invoices.read") ? h(Revenue, null) : null, invoices && invoices.data.length > 0 ? h(Card, { title: t("home.recent"), actions: a({ href: "/invoices" }, t("tab.all")) }, ul({ class: "related" }, invoices.data.map((/** @type {Item} */ row) => li({ key: row.id }, a({ href: `/invoices/${row.id}` }, tables.invoices ? h(RelatedLine, { table: tables.invoices, row, client: true }) : null))))) : null),
      div({ class: "column-side" }, may("invoices.read") ? h(OpenByAge, null) : null, may("tasks.read") ? h(Tasks, null) : null, may("audit.read") ? h(Activity, null) : null)));
}

/** What happened last; its words come after the first screen. */
function Activity() {
  const [shown, setShown] = useState(/** @type {typeof import("../change.js") | null} */ (null));
  useEffect(() => { void Promise.all([import("../change.js"), loadRest()]).then(([module]) => setShown(module)); }, []);
  const changes = /** @type {Item[]} */ (useLoad(shown ? "/v1/changes?order=desc&limit=100" : null).answer?.data ?? []).filter((change) => !QUIET.has(change.entity_type));
  if (!shown || changes.length === 0) return null;
  const { ChangeLine, RecordName, told } = shown;
  return h(Card, { title: t("home.activity"), actions: a({ href: "/settings/audit" }, t("tab.all")) }, ol({ class: "changes" }, told(changes).slice(0, LINES).map((change) => li({ key: change.seq }, h(ChangeLine, { change }, h(RecordName, { change, before: changes.find((other) => other.entity_id === change.entity_id && other.seq < change.seq && other.timestamp !== change.timestamp) }))))));
}

const LINES = 6;
/** PDFs and sessions would hide the rest. */
const QUIET = new Set(["file", "user", "api_key", "settings", "account"]);

/** The steps of a new account are loaded for new accounts only.
 * @param {{ clients: number, invoices: number, hide?: () => void }} properties */
function Start(properties) {
  const [shown, setShown] = useState(/** @type {typeof import("./start.js") | null} */ (null));
  useEffect(() => { void Promise.all([import("./start.js"), loadRest()]).then(([module]) => setShown(module)); }, []);
  return shown ? h(shown.FirstSteps, properties) : null;
}

function Revenue() {
  const { answer, error } = useLoad("/v1/reports/revenue");
  const report = answer?.data;
  const [chart, setChart] = useState(/** @type {typeof import("../chart.js") | null} */ (null));
  useEffect(() => { void import("../chart.js").then(setChart); }, []);
  if (error && !report) return null;
  const name = new Intl.DateTimeFormat(language === "nl" ? "nl-NL" : "en-GB", { month: "short", timeZone: "UTC" });
  const title = t("home.revenue");
  return h(Card, { title, actions: report ? span({ class: "soft" }, t("home.revenue_total", { amount: money(report.total_excl_vat) })) : null, class: "chart-card" },
    report && chart ? h(chart.BarChart, { title, unit: t("field.total_excl_vat"), bars: report.months.map((/** @type {Item} */ one) => ({ label: name.format(new Date(`${one.month}-01`)).replace(".", ""), value: Math.max(0, Number(one.total_excl_vat)), shown: money(one.total_excl_vat) })) }) : h(Skeleton, { rows: 6 }));
}

/** @type {Record<string, string>} */
const AGES = { not_due: "blue", "1-30": "ochre", "31-60": "ochre" };

function OpenByAge() {
  const { answer, error } = useLoad("/v1/reports/open");
  const report = answer?.data;
  if (error && !report) return null;
  const ages = /** @type {Item[]} */ (report?.ages ?? []);
  const top = Math.max(1, ...ages.map((one) => Number(one.amount)));
  return h(Card, { title: t("home.open"), actions: report ? a({ href: OUTSTANDING }, strong(null, money(report.amount))) : null }, report ? ul({ class: "ages" }, ages.map((one) => {
    const parts = [span(null, t(/** @type {any} */ (`age.${one.age}`))), span({ class: "amount" }, money(one.amount)),
      span({ class: "age-bar" }, span({ class: AGES[one.age] ?? "red", style: { width: `${Math.round((Math.max(0, Number(one.amount)) / top) * 100)}%` } }))];
    return li({ key: one.age }, one.count > 0 ? a({ href: agedAddress(one.age, report.date) }, ...parts) : div(null, ...parts));
  })) : h(Skeleton, { rows: 5 }));
}

const OUTSTANDING = "/invoices?outstanding=true";

/** The list of what an age counts: its days since the due date.
 * @param {string} age @param {string} date */
function agedAddress(age, date) {
  if (age === "not_due") return `${OUTSTANDING}&late=false`;
  const [least, most] = age.startsWith("over_") ? [Number(age.slice(5)) + 1] : age.split("-").map(Number);
  return `${OUTSTANDING}&late=true${most ? `&due_date_from=${plusDays(date, -most)}` : ""}&due_date_to=${plusDays(date, -(least ?? 1))}`;
}

function Tasks() {
  const loaded = useLoad(`/v1/tasks?status=open&deadline_to=${plusDays(today(), (7 - new Date(today()).getUTCDay()) % 7)}&sort=deadline&order=asc&per_page=8`);
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []).filter((row) => row.deadline);
  /** @param {Item} task */
  const tick = async (task) => {
    try {
      await post(`/v1/tasks/${task.id}/complete`, undefined);
      say(t("home.task_done", { title: task.title }), { undo: () => void post(`/v1/tasks/${task.id}/reopen`, undefined).catch(sayError) });
    } catch (error) { sayError(error); }
  };
  return h(Card, { title: t("home.tasks"), actions: a({ href: "/tasks?status=open&sort=deadline&order=asc" }, t("tab.all")) }, loaded.answer && rows.length === 0 ? p({ class: "soft" }, t("empty.tasks")) : ul({ class: "tick-list" }, rows.map((task) => li({ key: task.id },
    button({ type: "button", class: "tick", "aria-label": `${t("action.tasks.complete")}: ${task.title}`, onClick: () => void tick(task) }, h(Icon, { name: "check" })),
    div(null, a({ href: `/tasks/${task.id}` }, task.title), div({ class: "soft" }, span({ class: daysUntil(task.deadline) < 0 ? "late" : "" }, daysUntil(task.deadline) === 0 ? t("time.today") : nearDay(task.deadline)), task.client_id ? [" · ", h(LinkName, { key: "client", table: "clients", id: task.client_id, plain: true })] : null))))));
}
