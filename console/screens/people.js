// The people who work at a company: clients of their own, linked to it.
import { useMemo } from "preact/hooks";
import { formKey, post, remove, useLoad } from "../api.js";
import { LinkBox } from "../combobox.js";
import { Dialog, confirm, openDialog, useTyped } from "../dialog.js";
import { TextBox } from "../field.js";
import { div, h, label, li, strong, ul } from "../html.js";
import { Button, Card, Empty, say } from "../parts.js";
import { may } from "../schema.js";
import { LinkName } from "../value.js";
import { fieldName, t, tableName } from "../words.js";
import { openQuickClient } from "./quick_client.js";

/** @typedef {import("../api.js").Item} Item */

/** @param {{ id: string }} properties The id of the company. */
export function People({ id }) {
  const loaded = useLoad(`/v1/clients/${id}/links`);
  const links = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const edits = may("relations.write");
  const add = edits ? h(Button, { small: true, icon: "plus", onClick: () => openDialog(({ close }) => h(NewLink, { id, close })) }, t("people.add")) : null;
  if (!loaded.answer) return null;
  if (links.length === 0) return h(Card, { title: tableName("links") }, h(Empty, { icon: "clients", title: t("people.none") }, add));
  /** @param {Item} link */
  const drop = (link) => confirm({ title: t("people.remove"), text: t("people.remove_text"), action: t("people.remove"), danger: true, run: async () => { await remove(`/v1/clients/${id}/links/${link.id}`); say(t("saved")); } });
  return h(Card, { title: tableName("links"), actions: add }, ul({ class: "lines" }, links.map((link) => li({ key: link.id },
    div(null, strong(null, h(LinkName, { table: "clients", id: link.client_id })), div({ class: "soft" }, [link.function, link.department].filter(Boolean).join(" · "))),
    edits ? h(Button, { small: true, quiet: true, icon: "close", label: t("people.remove"), onClick: () => drop(link) }) : null))));
}

/** @param {{ id: string, close: () => void }} properties */
function NewLink({ id, close }) {
  const draft = useTyped(`link ${id}`, { person: "", function: "", department: "" });
  const { person, ...work } = draft.values;
  const key = useMemo(formKey, []);
  const run = async () => {
    await post(`/v1/clients/${id}/links`, { client_id: person, ...work }, { key });
    say(t("saved"));
  };
  return h(Dialog, { title: t("people.add"), action: t("save"), close, run, draft, disabled: !person },
    div({ class: "field" }, label({ for: "person" }, t("people.person")), h(LinkBox, { id: "person", table: "clients", query: "contact_type=private", value: person, onChange: (value) => draft.set({ person: value }), onNew: (typed) => openQuickClient(typed, (made) => draft.set({ person: made.id })) })),
    div({ class: "fields" }, /** @type {const} */ (["function", "department"]).map((name) =>
      div({ key: name, class: "field" }, label({ for: `link-${name}` }, fieldName("links", name)), h(TextBox, { id: `link-${name}`, value: work[name], length: 255, onChange: (value) => draft.set({ [name]: value }) })))));
}
