// The deliveries of a webhook endpoint: what was sent, what came back, and sending it again.
import { useEffect } from "preact/hooks";
import { get, post, useLoad } from "./api.js";
import { eventName } from "./change.js";
import { count } from "./format.js";
import { button, div, h, li, p, span, strong, ul } from "./html.js";
import { Button, Card, Empty, Moment, Pill, say, sayError, useTurn } from "./parts.js";
import { showOnce } from "./once.js";
import { may } from "./schema.js";
import { said, t } from "./words.js";

/** @typedef {import("./api.js").Item} Item */

const UNDERWAY = ["queued", "sending"];
/** Deliveries are not in the log that screens follow. */
const LOOK_AGAIN = 2000;

/** @param {{ id: string }} properties */
export function Deliveries({ id }) {
  const path = `/v1/webhook-endpoints/${id}`;
  const loaded = useLoad(`${path}/deliveries?per_page=50`);
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const edits = may("webhooks.write");
  const [busy, take] = useTurn();
  useEffect(() => {
    const soon = rows.some((row) => UNDERWAY.includes(row.status));
    const timer = setInterval(() => { if (!document.hidden) loaded.reload(); }, LOOK_AGAIN * (soon ? 1 : 5));
    return () => clearInterval(timer);
  }, [loaded.answer]);
  const rotate = () => post(`${path}/rotate-secret`, {}).then(showOnce, sayError);
  /** @param {Item} row */
  const resend = async (row) => sayOutcome(path, (await post(`${path}/deliveries/${row.id}/resend`, undefined)).data.id);
  return h(Card, { title: t("webhook.deliveries"), actions: edits ? button({ type: "button", class: "link", onClick: () => void rotate() }, t("action.rotate-secret")) : null },
    rows.length === 0 ? h(Empty, { icon: "flows", title: t("webhook.none") }) : ul({ class: "lines" }, rows.map((row) => li({ key: row.id },
      div(null, strong(null, eventName(row.event)), div({ class: "soft" }, row.event, " · ", h(Moment, { at: row.created_at ?? row.meta?.created_at }), row.response_status ? ` · ${answerOf(row)}` : ""), row.reason ? p({ class: row.status === "failed" ? "late" : "soft" }, said(row.reason) || row.reason) : null),
      span({ class: "line-end" }, h(Pill, { table: "deliveries", field: "status", value: row.status }), edits ? h(Button, { small: true, quiet: true, busy, name: `${t("webhook.resend")}: ${row.event}`, onClick: () => take(() => resend(row)) }, t("webhook.resend")) : null)))));
}

/** @param {Item} row */
const answerOf = (row) => `HTTP ${row.response_status}${row.duration_ms ? ` · ${count(row.duration_ms)} ms` : ""}`;

/** Sends a test, and says what the receiver answered.
 * @param {string} path Of the endpoint. */
export const sendTest = async (path) => sayOutcome(path, (await post(`${path}/test`, undefined)).data.delivery_id);

/** Waits for the first attempt of a delivery.
 * @param {string} path @param {string} id */
async function sayOutcome(path, id) {
  for (let look = 0; look < MAX_LOOKS; look++) {
    const { data: latest } = await get(`${path}/deliveries?per_page=20`, { quiet: true });
    const data = /** @type {Item} */ (latest.find((/** @type {Item} */ one) => one.id === id) ?? { status: "queued" });
    if (data.status === "delivered") return say(t("webhook.delivered", { answer: answerOf(data) }));
    if (data.status === "recorded") return say(said(data.reason) || data.reason);
    if (!UNDERWAY.includes(data.status)) return say(data.response_status ? t("webhook.refused", { answer: answerOf(data) }) : t("webhook.unreached"), { error: true, detail: said(data.reason) || data.reason });
    await new Promise((resume) => setTimeout(resume, PAUSE));
  }
  say(t("webhook.underway"));
}

/** A receiver that is slow answers within some seconds; after that, the list tells. */
const MAX_LOOKS = 20;
const PAUSE = 500;
