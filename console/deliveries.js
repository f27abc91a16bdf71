// The deliveries of a webhook endpoint: what was sent, what came back, and sending it again.
import { post, useLoad } from "./api.js";
import { button, div, h, li, p, span, strong, ul } from "./html.js";
import { Card, Empty, Moment, Pill, say, sayError } from "./parts.js";
import { showOnce } from "./once.js";
import { may } from "./schema.js";
import { t } from "./words.js";

/** @typedef {import("./api.js").Item} Item */

/** @param {{ id: string }} properties */
export function Deliveries({ id }) {
  const path = `/v1/webhook-endpoints/${id}`;
  const rows = /** @type {Item[]} */ (useLoad(`${path}/deliveries?per_page=50`).answer?.data ?? []);
  const edits = may("webhooks.write");
  const rotate = () => post(`${path}/rotate-secret`, {}).then(showOnce, sayError);
  /** @param {Item} row */
  const resend = (row) => post(`${path}/deliveries/${row.id}/resend`, undefined).then(() => say(t("webhook.resent")), sayError);
  return h(Card, { title: t("webhook.deliveries"), actions: edits ? button({ type: "button", class: "link", onClick: () => void rotate() }, t("action.rotate-secret")) : null },
    rows.length === 0 ? h(Empty, { icon: "flows", title: t("webhook.none") }) : ul({ class: "lines" }, rows.map((row) => li({ key: row.id },
      div(null, strong(null, row.event), div({ class: "soft" }, h(Moment, { at: row.created_at ?? row.meta?.created_at }), row.response_status ? ` · HTTP ${row.response_status}` : ""), row.error ? p({ class: "late" }, row.error) : null),
      span({ class: "line-end" }, h(Pill, { table: "deliveries", field: "status", value: row.status }), edits ? button({ type: "button", class: "link", onClick: () => void resend(row) }, t("webhook.resend")) : null)))));
}
