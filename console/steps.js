// What the steps of a flow have, until the server tells it: types, fields, operators, events.
import { fieldName, t, word } from "./words.js";

/** @typedef {{ name: string, kind: "text" | "long" | "json" | "choice" | "boolean" | "conditions" | "duration", choices?: string[] }} StepField */
/** @typedef {import("./api.js").Item} Item */

/** @param {string} name @returns {StepField} */
const text = (name) => ({ name, kind: "text" });
/** @param {string} name @returns {StepField} */
const long = (name) => ({ name, kind: "long" });

/** @type {Record<string, StepField[]>} */
const FIELDS = {
  send_email: [text("to"), text("cc"), text("subject"), long("body"), { name: "attach_pdf", kind: "boolean" }],
  create_task: [text("title"), { name: "category", kind: "choice", choices: ["task", "call", "meeting"] }, { name: "deadline", kind: "duration" }, long("notes"), text("client_id"), text("deal_id"), text("project_id")],
  create_note: [long("body"), text("client_id"), text("invoice_id"), text("project_id"), text("deal_id")],
  create_ticket: [text("subject"), { name: "priority", kind: "choice", choices: ["low", "normal", "high", "urgent"] }, text("client_name"), text("client_email"), text("client_id")],
  create_deal: [text("title"), text("amount"), text("client_id"), text("expected_close_date")],
  create_invoice: [text("title"), text("client_id"), { name: "rows", kind: "json" }],
  add_ticket_message: [{ name: "message_type", kind: "choice", choices: ["reply", "note"] }, long("body"), text("ticket_id")],
  send_document: [{ name: "send_type", kind: "choice", choices: ["invoice", "quote", "invoice_rem1", "invoice_rem2", "invoice_rem3", "quote_rem1", "quote_rem2", "quote_rem3", "order_confirmation"] }, text("to"), text("subject"), long("message")],
  update: [{ name: "fields", kind: "json" }, text("entity_type"), text("id")],
  http: [text("url"), { name: "method", kind: "choice", choices: ["POST", "GET", "PUT", "PATCH", "DELETE"] }, { name: "headers", kind: "json" }, { name: "body", kind: "json" }],
  trigger: [text("event"), { name: "data", kind: "json" }],
  wait: [{ name: "for", kind: "duration" }, text("until")],
  approval: [text("message")],
  condition: [{ name: "conditions", kind: "conditions" }],
};

export const STEP_TYPES = Object.keys(FIELDS);
export const OPERATORS = ["eq", "ne", "gt", "gte", "lt", "lte", "contains", "starts_with", "in", "exists"];
export const EVENTS = ("ticket.inbound_message ticket.created ticket.status_changed ticket.closed ticket.message ticket.stale quote.viewed quote.accepted quote.created quote.silent deal.won deal.lost deal.phase_changed deal.created deal.stalled deal.phase_idle deal.close_due deal.no_followup sales.document_sent invoice.created invoice.credited invoice.paid invoice.late project.created project.completed project.status_changed workorder.completed customer.created customer.updated customer.first_invoice_paid customer.inactive customer.no_followup customer.payment_overdue subscription.expiring mail.unanswered mail.bounced mail.failed document.draft").split(" ");

/** The fields of a step: those of its type, then what else it has.
 * @param {Item} step @returns {StepField[]} */
export function stepFields(step) {
  const known = FIELDS[step.type] ?? [];
  const others = Object.keys(step).filter((name) => !["type", "name", "key", "continue_on_error"].includes(name) && !known.some((field) => field.name === name));
  return [...known, ...others.map((name) => /** @type {StepField} */ ({ name, kind: typeof step[name] === "string" ? "text" : "json" }))];
}

/** @param {string} type */
export const stepName = (type) => word([`step.${type}`], type.replace(/_/g, " "));

/** @param {string} type @param {string} field */
export const stepFieldName = (type, field) => word([`field.steps.${type}.${field}`], fieldName("steps", field));

/** A step in one line.
 * @param {Item} step */
export function stepLine(step) {
  switch (step.type) {
    case "wait": return duration(step.for) || step.until || "";
    case "approval": return step.message ?? "";
    case "condition": return (step.conditions ?? []).map(conditionLine).join(", ");
    case "send_email": return [step.to, step.subject].filter(Boolean).join(": ");
    case "http": return [step.method ?? "POST", step.url].join(" ");
    default: return step.title ?? step.subject ?? step.body ?? step.event ?? (step.send_type ? word([`mail.${step.send_type}`], step.send_type) : "");
  }
}

/** A field of an event as people say it: "Mail › Type of mail" for data.mail.send_type.
 * @param {string} path */
export function pathName(path) {
  const parts = path.split(/[.[\]]+/).slice(1).filter((part) => part && part !== "meta");
  return word([`field.event.${path}`], parts.map((part) => eventFieldName("", part)).join(" › "));
}

/** Beside the other fields of its record: a list calls both the rate and the amount "VAT".
 * @param {string} table @param {string} field */
export const eventFieldName = (table, field) => word([`field.event.${field}`], fieldName(table, field));

/** A condition as people say it: "Payment status is one of Overdue or Partly paid".
 * @param {Item} condition */
export function conditionLine(condition) {
  const { field = "", op, value } = condition;
  const name = field.slice(field.lastIndexOf(".") + 1);
  // The record has what it had when the flow was started.
  if (op === "eq" && typeof value === "string" && /^\{\{ *data\.(\w+) *\}\}$/.exec(value)?.[1] === name) return `${pathName(field)} ${t("operator.unchanged")}`;
  const said = op === "exists" ? (value === false ? t("no") : "") : (Array.isArray(value) ? value : [value ?? ""]).map((one) => valueWord(name, one)).join(` ${t("flow.or")} `);
  return [pathName(field), word([`operator.${op}`], op), said].filter(Boolean).join(" ");
}

/** @param {string} field @param {unknown} value */
const valueWord = (field, value) => (typeof value === "boolean" ? t(value ? "yes" : "no") : typeof value === "string" ? word([`choice.${field}.${value}`, `status.${value}`, `mail.${value}`], `“${value}”`) : JSON.stringify(value));

/** P3D as "3 days".
 * @param {string | undefined} text */
function duration(text) {
  const match = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?)?$/.exec(text ?? "");
  if (!match) return text ?? "";
  return [["days", match[1]], ["hours", match[2]], ["minutes", match[3]]].filter(([, number]) => number).map(([unit, number]) => word([`duration.${unit}`], `${number} ${unit}`, { n: Number(number) })).join(", ");
}

/** What starts a flow, in words.
 * @param {Item} flow */
export const triggerText = (flow) => (flow.trigger_type === "schedule" ? word(["flow.schedule"], "", { cron: flow.trigger_key }) : word([`trigger.${flow.trigger_key}`], flow.trigger_key));
