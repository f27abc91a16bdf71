// Flows as cards, the page of a flow with its steps and runs, and the page of a run.
import { useState } from "preact/hooks";
import { patch, post, useLoad } from "../api.js";
import { removeItem } from "../detail.js";
import { Missing } from "../missing.js";
import { confirm, openDialog } from "../dialog.js";
import { keepDoubts } from "../doubts.js";
import { count, moment, money } from "../format.js";
import { a, button, details, div, h, li, ol, p, pre, span, strong, summary, ul } from "../html.js";
import { useKeys } from "../keys.js";
import { ExportButton } from "../list.js";
import { Button, Card, Empty, Facts, Head, Icon, Menu, Moment, Pill, Problem, Skeleton, onPhone, say, sayError, saySaved } from "../parts.js";
import { tasteOf } from "../resources.js";
import { go } from "../router.js";
import { can, itemPath, valueOf } from "../schema.js";
import { conditionLine, pathName, stepLine, stepName, triggerText } from "../steps.js";
import { AboutName, LinkName, aboutOf } from "../value.js";
import { actionName, doneText, given, said, t, tableName, word } from "../words.js";
import { Approving, Backtest } from "./backtest.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table }} properties */
export function Flows({ table }) {
  const loaded = useLoad(`${table.path}?per_page=100`);
  const waiting = useLoad("/v1/automation/runs?status=pending_approval&per_page=1").answer?.meta.total ?? 0;
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const figures = /** @type {Item[] | undefined} */ (useLoad("/v1/reports/flows").answer?.data);
  return div({ class: "page" },
    h(Head, { title: tableName("flows") }, rows.length > 0 ? h(ExportButton, { resource: table.key, filters: {} }) : null, h(Button, { href: waiting ? "/runs?status=pending_approval" : "/runs" }, tableName("runs"), waiting ? ` (${waiting})` : ""), can(table, "create") ? h(Button, { primary: true, icon: "plus", href: "/flows/new" }, word(["new.flows"], "")) : null),
    loaded.error ? h(Problem, { error: loaded.error, retry: loaded.reload }) : !loaded.answer ? h(Skeleton, { rows: 8 }) : rows.length === 0 ? h(Empty, { icon: "flows", title: t("list.empty", { many: tableName("flows").toLowerCase() }) }) : null,
    div({ class: "flow-grid" }, rows.map((flow) => h(FlowCard, { key: flow.id, table, flow, ran: figures && (figures.find((one) => one.flow_id === flow.id) ?? NEVER) }))));
}

const NEVER = { runs: 0, failed: 0 };

/** @param {{ table: Table, flow: Item, ran?: Item }} properties `ran`: its runs of thirty days, as soon as they are there. */
function FlowCard({ table, flow, ran }) {
  return div({ class: "card flow-card" },
    div({ class: "flow-top" }, a({ href: `/flows/${flow.id}` }, given(flow.name)), h(Switch, { table, flow })),
    p({ class: "flow-trigger" }, h(Icon, { name: "flows" }), triggerText(flow)), p({ class: "soft" }, given(flow.description)),
    p({ class: "soft small" }, t("flow.n_steps", { n: flow.step_count ?? 0 }), ran ? ` · ${t("flow.n_runs", { n: ran.runs, count: count(ran.runs) + (ran.capped ? "+" : "") })}` : null,
      ran?.failed ? ["\u00a0· ", a({ key: "failed", href: `/runs?flow_id=${flow.id}&status=failed`, class: "late" }, t("flow.n_failed", { count: count(ran.failed) }))] : null), flow.meta?.stopped_reason ? p({ class: "late" }, said(flow.meta.stopped_reason) || flow.meta.stopped_reason) : null);
}

/** @param {{ table: Table, flow: Item, etag?: string }} properties */
function Switch({ table, flow, etag }) {
  const [on, setOn] = useState(/** @type {boolean | null} */ (null));
  const shown = on ?? flow.active;
  const flip = async () => {
    setOn(!shown);
    try {
      const { fields, rest } = keepDoubts(flow.id, await patch(itemPath(table, flow.id), { active: !shown }, { etag }));
      const key = shown ? "flow.switched_off" : fields > 0 ? "flow.on_doubts" : "flow.switched_on";
      saySaved(rest, t(key, { name: given(flow.name), n: fields }), fields > 0 ? { href: `/flows/${flow.id}/edit`, label: t("edit") } : undefined);
    } catch (error) { sayError(error); }
    setOn(null);
  };
  return button({ type: "button", role: "switch", class: "toggle", "aria-checked": shown, "aria-label": `${given(flow.name)}: ${t("field.active").toLowerCase()}`, disabled: !can(table, "patch"), onClick: () => void flip() }, span(null));
}

/** @param {{ table: Table, id: string }} properties */
export function FlowPage({ table, id }) {
  const loaded = useLoad(itemPath(table, id));
  const runs = useLoad(`/v1/automation/runs?flow_id=${id}&per_page=20`).answer;
  const edits = can(table, "patch");
  const backtest = () => openDialog(({ close }) => h(Backtest, { id, close }));
  useKeys(edits ? [{ key: "e", label: t("edit"), run: () => go(`/flows/${id}/edit`) }] : []);
  if (loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (!loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 10 }));
  const flow = loaded.answer.data;
  const etag = loaded.answer.etag;
  const definition = flow.meta?.definition ?? flow.definition ?? {};
  const rows = (/** @type {Item[]} */ (runs?.data ?? [])).filter((run) => run.flow_id === id);
  return div({ class: "page" },
    h(Head, { title: given(flow.name), over: a({ href: "/flows" }, tableName("flows")), beside: h(Switch, { table, flow, etag }) },
      edits && !onPhone.value ? h(Button, { onClick: backtest }, t("flow.backtest")) : null, edits ? h(Button, { icon: "edit", href: `/flows/${id}/edit` }, t("edit")) : null,
      h(Menu, { label: t("more"), icon: "more", items: [{ label: t("flow.backtest"), icon: "search", hidden: !edits || !onPhone.value, run: backtest }, { label: t("delete"), icon: "trash", danger: true, hidden: !can(table, "delete"), run: () => removeItem(table, flow, etag) }] })),
    flow.meta?.stopped_reason ? div({ class: "problem", role: "alert" }, div(null, said(flow.meta.stopped_reason) || flow.meta.stopped_reason)) : null,
    div({ class: "columns" },
      div({ class: "column-main" }, h(StepList, { flow, steps: definition.steps ?? [], conditions: definition.conditions ?? [] })),
      div({ class: "column-side" }, flow.description ? h(Card, { title: t("field.description") }, p(null, given(flow.description))) : null,
        h(Card, { title: tableName("runs") }, rows.length === 0 ? p({ class: "soft" }, t("flow.no_runs")) : ul({ class: "lines" }, rows.map((run) => li({ key: run.id }, a({ href: `/runs/${run.id}` }, h(Moment, { at: run.created_at ?? run.meta?.created_at })), h(Pill, { table: "runs", field: "status", value: run.status }))))))));
}

/** @param {{ flow: Item, steps: Item[], conditions: Item[] }} properties */
const StepList = ({ flow, steps, conditions }) => ol({ class: "flow-steps" },
  li({ class: "flow-step start" }, span({ class: "attention-icon" }, h(Icon, { name: "flows" })), div(null, strong(null, triggerText(flow)), conditions.map((condition, place) => p({ key: place, class: "soft" }, h(Filled, { text: `${t("flow.if")} ${conditionLine(condition)}` }))))),
  steps.map((step, place) => li({ key: place, class: "flow-step" }, span({ class: "attention-icon" }, h(Icon, { name: STEP_ICONS[step.type] ?? "right" })), div(null, strong(null, stepName(step.type)), p({ class: "soft" }, h(Filled, { text: stepLine(step) }))))));

/** A text with the names of the fields that are filled in.
 * @param {{ text: string }} properties */
const Filled = ({ text }) => String(text).split(/\{\{ *([\w.[\]]+)[^}]*\}\}/).map((part, place) => (place % 2 ? span({ key: place, class: "filled", title: `{{ ${part} }}` }, pathName(part) || part) : part));

/** @type {Record<string, string>} */
export const STEP_ICONS = { send_email: "mail", create_task: "tasks", create_note: "note", create_ticket: "tickets", create_deal: "deals", create_invoice: "invoices", add_ticket_message: "tickets", send_document: "send", update: "edit", http: "link", trigger: "flows", wait: "hours", approval: "check", condition: "filter" };

/** Why a run failed: the step by its name, and the reason.
 * @param {string} error */
function runError(error) {
  const [, place, type = "", why = ""] = /^Step (\d+) \((\w+)\): (.*)$/s.exec(error) ?? [];
  return place ? `${t("flow.step_n", { n: Number(place) })} (${stepName(type)}): ${said(why) || why}` : said(error) || error;
}

/** @param {{ table: Table, id: string }} properties */
export function RunPage({ table, id }) {
  const loaded = useLoad(itemPath(table, id));
  const steps = useLoad(`${itemPath(table, id)}/steps`).answer;
  if (loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (!loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 8 }));
  const run = loaded.answer.data;
  const allowed = /** @type {Record<string, string[]>} */ ({ pending_approval: ["approve", "reject"], failed: ["retry"], running: ["cancel"], waiting: ["cancel"], retrying: ["retry", "cancel"], queued: ["cancel"] })[run.status] ?? [];
  /** @param {string} name */
  const act = (name) => confirm({ title: actionName("runs", name), text: word([`confirm.runs.${name}`], t("confirm.text")), action: actionName("runs", name), danger: name === "reject" || name === "cancel", run: async () => { await post(`${itemPath(table, id)}/${name}`, undefined); say(doneText("runs", name)); } });
  const { kind, item } = aboutOf(run);
  const all = /** @type {Item[]} */ (steps?.data ?? []);
  const asking = all.find((step) => step.status === "pending_approval");
  const question = asking?.result?.message;
  return div({ class: "page" },
    h(Head, { title: question || given(run.flow_name) || tableName("runs", 1), over: [a({ key: "runs", href: "/runs" }, tableName("runs")), question ? ` · ${given(run.flow_name)}` : ""], beside: h(Pill, { table: "runs", field: "status", value: run.status }) }, can(table, "get") ? allowed.map((name, place) => h(Button, { key: name, primary: place === 0, onClick: () => act(name) }, actionName("runs", name))) : null),
    run.error ? div({ class: "problem", role: "alert" }, div(null, runError(run.error))) : null,
    div({ class: "columns" },
      div({ class: "column-main" }, kind && item ? h(Card, { title: tableName(kind.key, 1) }, h(Facts, { facts: [[t("field.entity_id"), h(AboutName, { run })], [t("field.client_id"), kind.key !== "clients" && valueOf(item, "client_id") ? h(LinkName, { table: "clients", id: valueOf(item, "client_id") }) : item.client_name], [t("field.amount"), valueOf(item, tasteOf(kind.key).amount ?? "") ? money(valueOf(item, tasteOf(kind.key).amount ?? "")) : ""]] })) : null,
        asking ? h(Approving, { key: asking.place, run, from: asking.place }) : null,
        h(Card, { title: t("field.steps") }, ol({ class: "lines" }, all.map((step, place) => li({ key: place }, div(null, strong(null, stepName(step.type ?? step.step_type ?? "")), step.error ? p({ class: "late" }, said(step.error) || step.error) : null, step.type === "approval" && step.result?.message ? p(null, step.result.message) : step.result && Object.keys(step.result).length ? details({ class: "step-result" }, summary(null, t("run.result")), pre({ class: "json" }, JSON.stringify(step.result, null, 2).slice(0, 2000))) : null), h(Pill, { table: "steps", field: "status", value: step.status, tone: step.status === "pending" ? "calm" : undefined })))))),
      div({ class: "column-side" }, h(Card, { title: t("facts") }, h(Facts, { facts: [[t("field.event"), word([`trigger.${run.trigger_key}`], run.trigger_key ?? "")], [t("field.entity_id"), item ? "" : kind ? h(AboutName, { run }) : run.entity_type], [t("field.attempts"), run.attempts ? String(run.attempts) : ""], [t("field.next_attempt_at"), run.next_attempt_at ? moment(run.next_attempt_at) : ""], [t("field.created_at"), h(Moment, { at: run.created_at ?? run.meta?.created_at })], [t("field.finished_at"), run.finished_at ? moment(run.finished_at) : ""]] })))));
}
