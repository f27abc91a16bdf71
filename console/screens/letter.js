// Sending a document by mail: what is sent and to whom, and beside it the mail as it will look.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, formKey, get, post } from "../api.js";
import { Dialog, openDialog } from "../dialog.js";
import { dropDraft, keepDraft, readDraft } from "../drafts.js";
import { ChoiceBox, TextBox } from "../field.js";
import { errorsByField } from "../form.js";
import { isAhead, moment } from "../format.js";
import { a, button, dd, div, dl, dt, h, iframe, input, label, p, section, span } from "../html.js";
import { SERVER_SENDER, STORES_MAIL, sayMailed } from "../mailed.js";
import { Icon, Problem, Skeleton, onPhone, sayError } from "../parts.js";
import { itemPath, may, tables } from "../schema.js";
import { choiceName, t, word } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** The types of mail that people choose from. A credit invoice and a workorder have one of their own. @type {Record<string, string[]>} */
const TYPES = { invoice: ["invoice", "invoice_rem1", "invoice_rem2", "invoice_rem3"], quote: ["quote", "quote_rem1", "quote_rem2", "quote_rem3", "order_confirmation"] };
/** What is kept while it is typed. */
const TYPED = ["send_type", "to", "cc", "subject", "message"];

/** @param {{ table: Table, id: string }} what */
export const openLetter = (what) => openDialog(({ close }) => h(Letter, { ...what, close }));

/** @param {{ table: Table, id: string, close: () => void }} properties */
function Letter({ table, id, close }) {
  const path = itemPath(table, id);
  const draftName = `${path}/send`;
  const [mail, setMail] = useState(/** @type {Item | null} */ (null));
  // The default texts of the chosen type, in the language of the document.
  const [usual, setUsual] = useState(/** @type {Item} */ ({}));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [faults, setFaults] = useState(/** @type {Record<string, string>} */ ({}));
  const [restored, setRestored] = useState(false);
  const key = useMemo(formKey, []);
  useEffect(() => {
    const typed = readDraft(draftName)?.value ?? {};
    get(`${path}/send-preview${typed.send_type ? `?send_type=${typed.send_type}` : ""}`)
      .then(({ data }) => { setUsual(data); setMail({ cc: "", include_pdf: true, ...data, ...typed }); setRestored(Object.keys(typed).some((name) => typed[name] && typed[name] !== data[name])); }, setError);
  }, []);
  // What stands there now, also after waiting for an answer.
  const latest = useRef(mail);
  latest.current = mail;
  /** @param {Item} changes */
  const set = (changes) => {
    const now = { ...latest.current, ...changes };
    setMail(now);
    keepDraft(draftName, () => Object.fromEntries(TYPED.map((name) => [name, now[name]])));
  };
  /** What was typed stays; default texts become those of the other type.
   * @param {string} type */
  const choose = (type) => get(`${path}/send-preview?send_type=${type}`).then(({ data }) => {
    const untouched = ["to", "subject", "message"].filter((name) => latest.current?.[name] === usual[name]);
    set({ send_type: type, ...Object.fromEntries(untouched.map((name) => [name, data[name]])) });
    setUsual(data);
  }, sayError);
  const drop = () => { dropDraft(draftName); setMail({ ...mail, cc: "", ...usual }); setRestored(false); };
  const run = async () => {
    setFaults({});
    const { data, meta } = await post(`${path}/send`, { to: mail?.to, ...(mail?.cc ? { cc: mail.cc } : {}), subject: mail?.subject, message: mail?.message, send_type: mail?.send_type, include_pdf: mail?.include_pdf }, { key }).catch((problem) => {
      const wrong = problem instanceof ApiError ? errorsByField(problem) : {};
      const first = TYPED.find((name) => wrong[name]);
      // Without the dialog, nothing would say what is wrong.
      if (!first || !document.getElementById(`send-${first}`)) throw problem;
      setFaults(wrong);
      requestAnimationFrame(() => document.getElementById(`send-${first}`)?.focus());
      // The fields say what is wrong.
      throw null;
    });
    const to = mail?.to ?? "";
    sayMailed(isAhead(data.leaves_at) ? t("send.waits", { to, at: moment(data.leaves_at) }) : t("send.done", { to }), to, meta?.warnings);
  };
  /** @param {string} name */
  const control = (name) => ({ id: `send-${name}`, value: mail?.[name], invalid: Boolean(faults[name]), describedBy: faults[name] ? `send-${name}-error` : undefined, onChange: (/** @type {any} */ value) => set({ [name]: value }) });
  /** @param {string} name */
  const fault = (name) => (faults[name] ? p({ class: "wrong", id: `send-${name}-error` }, faults[name]) : null);
  // The dialog opened before there was a field; a phone shows its keyboard only if something must be typed.
  useEffect(() => { if (mail) /** @type {HTMLElement | null} */ (document.querySelector(onPhone.value && mail.to ? ".send [type=submit]" : "#send-to"))?.focus(); }, [mail !== null]);
  const types = Object.values(TYPES).find((all) => all.includes(mail?.send_type)) ?? [];
  const own = mail !== null && ["subject", "message"].some((name) => mail[name] !== usual[name]);
  return h(Dialog, { title: t("send.title"), action: t("action.send"), wide: true, class: "send", close, run, draft: { restored, drop }, disabled: !mail },
    error ? h(Problem, { error }) : null, !mail && !error ? h(Skeleton, { rows: 10 }) : null,
    mail && STORES_MAIL ? div({ class: "notice" }, span(null, t("send.stored"))) : null,
    mail ? div({ class: "send-columns" },
      div({ class: "send-form" },
        div({ class: "field" }, label({ for: "send-to" }, t("field.to")), h(TextBox, control("to")), fault("to")),
        div({ class: "field" }, label({ for: "send-cc" }, t("field.cc")), h(TextBox, control("cc")), fault("cc")),
        types.length > 0 ? div({ class: "field" }, label({ for: "send-type" }, t("send.type")), h(ChoiceBox, { id: "send-type", value: mail.send_type, onChange: (type) => void choose(type), options: types.map((type) => /** @type {[string, string]} */ ([type, word([`mail.${type}`], type)])) })) : null,
        div({ class: "field" }, label({ for: "send-subject" }, t("field.subject")), h(TextBox, control("subject")), fault("subject")),
        div({ class: "field mail-text" }, label({ for: "send-message" }, t("send.message")), h(TextBox, { ...control("message"), long: true, describedBy: faults.message ? "send-message-error" : "send-language" }), fault("message"),
          p({ class: "help", id: "send-language" }, t("send.language", { language: choiceName("", "language", usual.language) }), " ",
            `${mail.subject} ${mail.message}`.includes("{number}") ? `${t("send.number", { placeholder: "{number}" })} ` : null,
            own ? button({ type: "button", class: "link", onClick: () => set({ subject: usual.subject, message: usual.message }) }, t("send.restore")) : may("settings.write") && tables.mail_templates ? a({ href: tables.mail_templates.address, target: "_blank" }, t("send.templates")) : null)),
        div({ class: "field switch" }, input({ id: "send-pdf", type: "checkbox", checked: mail.include_pdf, onChange: (event) => set({ include_pdf: event.currentTarget.checked }) }), label({ for: "send-pdf" }, t("send.pdf")))),
      h(Preview, { mail, path })) : null);
}

/** The mail as the client will see it.
 * @param {{ mail: Item, path: string }} properties */
function Preview({ mail, path }) {
  const frame = useRef(/** @type {HTMLIFrameElement | null} */ (null));
  useEffect(() => fillIn(frame.current, mail.message ?? ""), [mail.message]);
  const sender = mail.from_email || SERVER_SENDER;
  /** @type {[string, string][]} */
  const facts = [[t("send.from"), sender ? `${mail.from} <${sender}>` : mail.from], [t("send.reply_to"), mail.reply_to === sender ? "" : mail.reply_to], [t("field.to"), mail.to], [t("field.cc"), mail.cc], [t("field.subject"), mail.subject]];
  return section({ class: "letter", "aria-label": t("send.preview") },
    dl({ class: "letter-head" }, facts.filter(([, value]) => value).map(([name, value]) => div({ key: name }, dt(null, name), dd(null, value)))),
    // Nothing runs in the frame; the same origin lets the text follow what is typed.
    iframe({ ref: frame, class: "letter-body", src: `/console${path}/send-preview/html`, sandbox: "allow-same-origin", title: t("send.preview"), tabIndex: -1, onLoad: () => fillIn(frame.current, mail.message ?? "") }),
    mail.include_pdf ? a({ class: "attachment", href: `/console${path}/pdf/content`, target: "_blank" }, h(Icon, { name: "files" }), span(null, mail.attachment)) : null);
}

/** Writes the message into the preview, whose links lead nowhere, and gives the frame the height of the mail.
 * @param {HTMLIFrameElement | null} frame @param {string} message */
function fillIn(frame, message) {
  const page = frame?.contentDocument;
  const words = page?.getElementById("message");
  if (!frame || !page || !words) return;
  words.replaceChildren(...message.trim().split("\n").flatMap((line, place) => (place > 0 ? [page.createElement("br"), line] : [line])));
  for (const link of page.querySelectorAll("a")) link.removeAttribute("href");
  frame.style.height = "0";
  frame.style.height = `${page.documentElement.scrollHeight}px`;
}
