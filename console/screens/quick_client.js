// A new client without leaving what is being made: only the name and how to reach them.
import { useMemo } from "preact/hooks";
import { formKey, post } from "../api.js";
import { Dialog, openDialog, useTyped } from "../dialog.js";
import { TextBox } from "../field.js";
import { div, fieldset, h, input, label, legend, span } from "../html.js";
import { learn } from "../value.js";
import { choiceName, t, word } from "../words.js";

/** @typedef {import("../api.js").Item} Item */

/** @param {string} typed @param {(client: Item) => void} done */
export const openQuickClient = (typed, done) => openDialog(({ close }) => h(QuickClient, { typed, done, close }));

/** @param {{ typed: string, done: (client: Item) => void, close: () => void }} properties */
function QuickClient({ typed, done, close }) {
  const draft = useTyped(`client ${typed}`, /** @type {Item} */ ({ type: "company", company_name: typed, firstname: "", lastname: "", email: "" }));
  const client = draft.values;
  const key = useMemo(formKey, []);
  const company = client.type === "company";
  /** @param {string} name */
  const control = (name) => ({ id: `quick-${name}`, value: client[name], onChange: (/** @type {string} */ value) => draft.set({ [name]: value }) });
  /** @param {string} name @param {string} text */
  const field = (name, text) => div({ class: "field", key: name }, label({ for: `quick-${name}` }, text), h(TextBox, { ...control(name), length: 255 }));
  const run = async () => {
    const body = Object.fromEntries(Object.entries(client).filter(([name, value]) => value !== "" && (company || name !== "company_name")));
    const answer = await post("/v1/clients", body, { key });
    learn("clients", answer.data);
    done(answer.data);
  };
  return h(Dialog, { title: word(["new.clients"], ""), action: t("save"), close, run, draft, disabled: company ? !client.company_name : !client.lastname },
    company ? field("company_name", t("field.company_name")) : null,
    div({ class: "fields" }, field("firstname", t("field.firstname")), field("lastname", t("field.lastname"))), field("email", t("field.email")),
    fieldset({ class: "field choice" }, legend(null, t("field.type")), div({ class: "radios" }, ["company", "private"].map((type) =>
      label({ key: type }, input({ type: "radio", name: "quick-type", checked: client.type === type, onChange: () => draft.set({ type, lastname: client.lastname || (type === "private" ? client.company_name : "") }) }), span(null, choiceName("clients", "type", type)))))));
}
