// The direct-debit mandate of a client: asked by a small payment, or recorded from a signed form; and revoked.
import { useMemo, useState } from "preact/hooks";
import { formKey, post, remove, useLoad } from "../api.js";
import { Dialog, confirm, openDialog, useTyped } from "../dialog.js";
import { DayBox, TextBox } from "../field.js";
import { day, today } from "../format.js";
import { a, div, h, label, p } from "../html.js";
import { CopyBox } from "../once.js";
import { Button, Card, Facts, Pill, say } from "../parts.js";
import { may, titleOf, tables } from "../schema.js";
import { t } from "../words.js";

/** @typedef {import("../api.js").Item} Item */

/** @param {{ client: Item }} properties */
export function Mandate({ client }) {
  const mandate = useLoad(may("relations.read") ? `/v1/clients/${client.id}/direct-debit/mandate` : null).answer?.data;
  if (!mandate?.client_found) return null;
  const status = String(mandate.mandate_status);
  const edits = may("relations.write");
  if (status === "none" && !edits) return null;
  return h(Card, { title: t("client.mandate"), actions: status === "none" ? null : h(Pill, { table: "mandates", field: "status", value: status, tone: mandate.mandate_authorized ? "good" : undefined }) },
    status === "none" ? p({ class: "soft" }, t("mandate.none")) : null,
    edits && mandate.provider === "manual" ? h(NoIban, { client }) : null,
    status === "pending" ? p({ class: "soft" }, t("mandate.pending")) : null,
    mandate.mandate_id ? h(Facts, { facts: [[t("mandate.reference"), mandate.mandate_id], [t("mandate.signed_on"), mandate.meta?.signed_on ? day(mandate.meta.signed_on) : ""]] }) : null,
    edits ? div({ class: "actions card-foot start" },
      !mandate.mandate_present && mandate.provider !== "manual" ? h(Button, { small: true, onClick: () => openDialog(({ close }) => h(Verify, { client, close })) }, status === "pending" ? t("mandate.ask_again") : t("mandate.ask")) : null,
      !mandate.mandate_present && mandate.provider === "manual" ? h(Button, { small: true, onClick: () => openDialog(({ close }) => h(Signed, { client, close })) }, t("mandate.record")) : null,
      mandate.mandate_present ? h(Button, { small: true, onClick: () => confirm({ title: t("mandate.revoke"), text: t("mandate.revoke_text"), action: t("mandate.revoke"), danger: true, run: async () => { await remove(`/v1/clients/${client.id}/direct-debit/mandate`); say(t("mandate.revoked")); } }) }, t("mandate.revoke")) : null) : null);
}

/** A file for the bank leaves out clients without an IBAN.
 * @param {{ client: Item, close?: () => void }} properties */
const NoIban = ({ client, close }) => (client.iban ? null : div({ class: "notice" }, div(null, t("mandate.no_iban"), " ", a({ href: `/clients/${client.id}/edit#f-iban`, class: "link", onClick: close }, t("mandate.give_iban")))));

/** Asks the client for a small payment; whoever pays it gives the mandate.
 * @param {{ client: Item, close: () => void }} properties */
function Verify({ client, close }) {
  const [link, setLink] = useState("");
  const key = useMemo(formKey, []);
  if (link) return h(Dialog, { key: "link", title: t("mandate.link"), action: t("once.kept"), single: true, close, run: async () => {} }, p(null, t("mandate.link_text")), h(CopyBox, { value: link, label: t("mandate.link") }),
    client.email ? div(null, h(Button, { icon: "mail", href: `mailto:${client.email}?body=${encodeURIComponent(link)}` }, t("client.mail"))) : null);
  const run = async () => {
    const { data } = await post(`/v1/clients/${client.id}/direct-debit/verification`, {}, { key });
    setLink(data.payment_url);
    // The dialog stays open, with the link in it.
    return new Promise(() => {});
  };
  return h(Dialog, { title: t("mandate.ask"), action: t("mandate.make_link"), close, run }, p(null, t("mandate.ask_text", { name: tables.clients ? titleOf(tables.clients, client) : "" })));
}

/** The form may have no reference yet: the number of the client and the day make one.
 * @param {{ client: Item, close: () => void }} properties */
function Signed({ client, close }) {
  const draft = useTyped(`mandate ${client.id}`, { reference: `M${client.debtor_number}-${today().replace(/-/g, "")}`, date: today() });
  const { reference, date } = draft.values;
  const key = useMemo(formKey, []);
  const run = async () => {
    const body = { mandate_id: reference.trim(), signed_on: date };
    await post(`/v1/clients/${client.id}/direct-debit/mandate`, body, { key });
    say(t("mandate.recorded"));
  };
  return h(Dialog, { title: t("mandate.record"), action: t("save"), close, run, draft, disabled: !reference.trim() || !date }, p({ class: "soft" }, t("mandate.record_text")), h(NoIban, { client, close }),
    div({ class: "fields" }, div({ class: "field" }, label({ for: "mandate-reference" }, t("mandate.reference")), h(TextBox, { id: "mandate-reference", value: reference, length: 35, onChange: (value) => draft.set({ reference: value }) })),
      div({ class: "field" }, label({ for: "mandate-date" }, t("mandate.signed_on")), h(DayBox, { id: "mandate-date", value: date, onChange: (value) => draft.set({ date: value }) }))));
}
