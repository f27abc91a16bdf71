// The first steps of a new account: each is ticked when it is done, and the next one is a button.
import { useLoad } from "../api.js";
import { a, div, h, li, ol, p, span, strong } from "../html.js";
import { Button, Card, Icon } from "../parts.js";
import { can, may, tables, valueOf } from "../schema.js";
import { t } from "../words.js";

/** @typedef {{ key: string, done: boolean, href: string, icon: string }} Step */

/** @param {{ clients: number, invoices: number, hide?: () => void }} properties */
export function FirstSteps({ clients, invoices, hide }) {
  const loaded = useLoad("/v1/corporate-identities").answer;
  const identities = loaded?.data ?? [];
  const own = identities.find((/** @type {any} */ one) => one.is_default) ?? identities[0];
  const identity = useLoad(own ? `/v1/corporate-identities/${own.id}` : null).answer?.data;
  const allDomains = useLoad("/v1/email-domains").answer;
  const domains = allDomains?.data ?? [];
  const steps = [
    { key: "identity", icon: "edit", done: Boolean(identity && valueOf(identity, "address") && (valueOf(identity, "iban") || valueOf(identity, "logo_file_id"))), href: own ? `/settings/corporate-identities/${own.id}/edit` : "/settings/corporate-identities/new", may: may("settings.write") },
    { key: "client", icon: "clients", done: clients > 0, href: "/clients/new", may: tables.clients ? can(tables.clients, "create") : false },
    { key: "invoice", icon: "invoices", done: invoices > 0, href: "/invoices/new", may: tables.invoices ? can(tables.invoices, "create") : false },
    { key: "mail", icon: "mail", done: domains.some((/** @type {any} */ one) => one.status === "verified"), href: "/settings/email-domains", may: may("settings.write") },
  ].filter((step) => step.may);
  // Before it is known whether there are details, the first step would make a second set of them.
  if (!loaded || !allDomains || (own && !identity)) return null;
  const next = steps.find((step) => !step.done);
  if (!next) return null;
  const done = steps.filter((step) => step.done).length;
  return h(Card, { title: t("home.start"), class: "start", actions: [span({ key: "done", class: "soft" }, t("home.start_done", { done, all: steps.length })), hide ? h(Button, { key: "hide", small: true, quiet: true, onClick: hide }, t("home.start_hide")) : null] },
    div({ class: "start-bar", "aria-hidden": "true" }, span({ style: { width: `${Math.round((done / Math.max(1, steps.length)) * 100)}%` } })),
    ol({ class: "steps" }, steps.map((step) => li({ key: step.key, class: step.done ? "done" : step === next ? "next" : "" },
      span({ class: "step-mark" }, h(Icon, { name: step.done ? "check" : step.icon })),
      div({ class: "step-words" }, step.done || step === next ? strong(null, t(/** @type {any} */ (`home.step_${step.key}`)), step.done ? span({ class: "hidden" }, ` ${t("home.step_done")}`) : null) : a({ href: step.href }, t(/** @type {any} */ (`home.step_${step.key}`))), p({ class: "soft" }, t(/** @type {any} */ (`home.step_${step.key}_text`)))),
      step === next ? h(Button, { primary: true, href: step.href }, t(/** @type {any} */ (`home.step_${step.key}_do`))) : step.done ? a({ class: "soft", href: step.href.replace("/new", "") }, t("home.step_see")) : null))));
}
