// What a flow would do: tested on past data, and what is left of a run when it is approved.
import { useEffect, useState } from "preact/hooks";
import { get, post, useLoad } from "../api.js";
import { tableOf } from "../change.js";
import { Dialog } from "../dialog.js";
import { count, moment, plusDays, today } from "../format.js";
import { details, div, h, li, ol, p, pre, span, strong, summary, ul } from "../html.js";
import { Card, Facts, Moment } from "../parts.js";
import { can, itemPath, may } from "../schema.js";
import { stepLine, stepName } from "../steps.js";
import { LinkName } from "../value.js";
import { said, t } from "../words.js";

/** @typedef {import("../api.js").Item} Item */

const DAYS = 90;

/** What a flow would have done in the last ninety days, record by record.
 * @param {{ id: string, close: () => void }} properties */
export function Backtest({ id, close }) {
  const [result, setResult] = useState(/** @type {Item | null} */ (null));
  const run = async () => {
    if (result) return true;
    setResult((await post(`/v1/automation/flows/${id}/backtest`, { from: `${plusDays(today(), -DAYS)}T00:00:00Z`, to: `${today()}T23:59:59Z` }, { keep: true })).data);
    return false;
  };
  const examples = /** @type {Item[]} */ (result?.examples ?? []);
  return h(Dialog, { title: t("flow.backtest"), action: t(result ? "close" : "flow.backtest_run"), single: result !== null, wide: result !== null, close, run },
    result ? p({ role: "status" }, strong(null, t("backtest.sum", { n: result.events, events: count(result.events), matched: count(result.matched) })), result.failed ? span({ class: "late" }, ` ${t("backtest.failed", { n: result.failed, count: count(result.failed) })}`) : null, result.complete ? null : ` ${t("backtest.partly")}`) : p(null, t("flow.backtest_text")),
    result && examples.length === 0 ? p({ class: "soft" }, t(result.events ? "backtest.none_ran" : "backtest.no_events")) : null,
    examples.length > 0 ? ul({ class: "lines backtest" }, examples.map((example, place) => li({ key: place }, div(null, div(null, h(About, { example }), span({ class: "soft" }, " · ", h(Moment, { at: example.at }))), ol({ class: "soft" }, /** @type {Item[]} */ (example.steps).map((step) => li({ key: step.place }, h(Would, { step })))))))) : null,
    result && examples.length < result.matched ? p({ class: "soft" }, t("backtest.first", { n: examples.length })) : null);
}

/** The record of an event; a schedule has none.
 * @param {{ example: Item }} properties */
function About({ example }) {
  const table = tableOf(example.entity_type);
  return table && example.entity_id ? h(LinkName, { table: table.key, id: example.entity_id }) : moment(example.at);
}

/** What a step would do, in one line.
 * @param {{ step: Item }} properties */
function Would({ step }) {
  if (step.error) return span({ class: "late" }, `${stepName(step.type)}: ${said(step.error) || step.error}`);
  const would = step.would ?? {};
  const line = step.type === "condition" ? t(would.holds ? "backtest.holds" : "backtest.stops") : would.until ? moment(would.until) : stepLine({ type: step.type, ...would });
  return `${stepName(step.type)}${line ? `: ${line}` : ""}`;
}

/** Mail that leaves when the run is approved, with its recipient and text.
 * @param {{ run: Item, from: number }} properties `from` is the step that asks. */
export function Approving({ run, from }) {
  const [mails, setMails] = useState(/** @type {Item[]} */ ([]));
  useEffect(() => { if (may("automation.write")) void mailsOf(run, from).then(setMails, () => {}); }, [run.id]);
  const hours = useLoad(mails.length > 0 && may("settings.read") ? "/v1/settings" : null).answer?.data;
  return mails.map((mail, place) => h(Card, { key: place, title: t("approving.mail") },
    h(Facts, { facts: [[t("mails.to"), mail.to], [t("field.subject"), mail.subject], [t("approving.attachment"), mail.attachment]] }),
    details({ open: true, class: "approving" }, summary(null, t("approving.text")), pre({ class: "code mail-text" }, mail.text)),
    hours?.mail_hours_from && hours.mail_hours_until ? p({ class: "soft small" }, t("approving.hours", { from: hours.mail_hours_from, until: hours.mail_hours_until })) : null));
}

/** Tries the flow on the event of the run; a document's mail has the words of its preview where the flow has none.
 * @param {Item} run @param {number} from @returns {Promise<Item[]>} */
async function mailsOf(run, from) {
  const id = run.entity_id ?? run.meta?.entity_id;
  const begun = Date.parse(run.created_at ?? run.meta?.created_at);
  const { data } = await post(`/v1/automation/flows/${run.flow_id}/backtest`, { from: new Date(begun - BEFORE).toISOString(), to: new Date(begun).toISOString() }, { keep: true, quiet: true });
  const own = /** @type {Item[]} */ (data.examples).filter((example) => example.entity_id === id).pop();
  const table = tableOf(run.entity_type);
  const mails = (/** @type {Item[]} */ (own?.steps ?? [])).filter((step) => step.place > from && step.would && MAILS.includes(step.type)).map(async ({ type, would }) => {
    if (type === "send_email" || !table || !can(table, "get")) return { to: would.to, subject: would.subject, text: would.body ?? would.message };
    const usual = (await get(`${itemPath(table, id)}/send-preview${would.send_type ? `?send_type=${would.send_type}` : ""}`, { quiet: true })).data;
    return { to: would.to ?? usual.to, subject: would.subject ?? usual.subject, text: would.message ?? usual.message, attachment: usual.attachment };
  });
  return (await Promise.all(mails)).filter((mail) => mail.to || mail.text);
}

const MAILS = ["send_email", "send_document"];
/** A run begins at the moment of its event, or somewhat later. */
const BEFORE = 60_000;
