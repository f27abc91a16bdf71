// What a webhook is, for an account that has none: an example of a body, and how to check its signature.
import { a, code, div, h, p, pre } from "../html.js";
import { Card } from "../parts.js";
import { t } from "../words.js";

const BODY = {
  type: "invoice.paid", timestamp: "2026-05-04T09:30:00Z",
  data: { id: "0198d1c2-…", number: "F2026-0042", title: "Boiler", payment_status: "paid", total_incl_vat: 1512.5 }, seq: 512,
};

export const WebhookExample = () => div({ class: "webhook-example" },
  h(Card, { title: t("webhook.example") }, p({ class: "soft" }, t("webhook.example_text")), pre({ class: "code" }, code(null, JSON.stringify(BODY, null, 2)))),
  h(Card, { title: t("webhook.check") }, p({ class: "soft" }, t("webhook.check_text")), p(null, a({ href: "/docs", target: "_blank" }, t("keys.docs")))));
