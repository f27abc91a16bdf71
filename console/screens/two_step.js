// Two-step sign-in: authenticator apps, passkeys and recovery codes of the user.
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../api.js";
import { Dialog, confirm, openDialog } from "../dialog.js";
import { TextBox } from "../field.js";
import { code, details, div, h, img, label, li, ol, p, pre, span, strong, summary, ul } from "../html.js";
import { CopyBox } from "../once.js";
import { Button, Card, Moment, Problem, Skeleton, say, sayError } from "../parts.js";
import { t } from "../words.js";
import { createPasskey } from "./passkey.js";

/** @typedef {import("../api.js").Item} Item */

export function TwoStep() {
  const [state, setState] = useState(/** @type {Item | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const load = () => get("/factors").then((answer) => setState(answer.data), setError);
  useEffect(() => void load(), []);
  if (error) return h(Card, { title: t("two.title") }, h(Problem, { error, retry: () => { setError(null); void load(); } }));
  if (!state) return h(Card, { title: t("two.title") }, h(Skeleton, { rows: 3 }));
  const factors = /** @type {Item[]} */ (state.factors);
  /** @param {string[] | undefined} codes */
  const added = (codes) => { void load(); if (codes?.length) showCodes(codes); else say(t("two.added")); };
  return h(Card, { title: t("two.title"), actions: span({ class: factors.length > 0 ? "pill good" : "pill calm" }, factors.length > 0 ? t("two.on") : t("two.off")) },
    state.required ? div({ class: "notice" }, span(null, t("error.two_factor_required"))) : null,
    p({ class: "soft" }, t("two.text")),
    factors.length > 0 ? ul({ class: "lines two-step" }, factors.map((factor) => li({ key: factor.id },
      div(null, strong(null, factor.name || methodName(factor.method)), div({ class: "soft" }, methodName(factor.method), " · ", t("two.since"), " ", h(Moment, { at: factor.created_at }))),
      h(Button, { small: true, onClick: () => removeFactor(factor, load) }, t("users.remove")))),
      li({ key: "codes" }, div(null, strong(null, t("two.codes")), div({ class: state.recovery_codes_left < 3 ? "late" : "soft" }, t("two.codes_left", { n: state.recovery_codes_left }))), h(Button, { small: true, onClick: renewCodes }, t("two.codes_new")))) : null,
    div({ class: "card-foot start" },
      h(Button, { icon: "phone", onClick: () => void addApp(added) }, t("two.add_app")),
      h(Button, { icon: "link", onClick: () => void addPasskey(added) }, t("two.add_passkey"))));
}

/** @param {string} method */
const methodName = (method) => (method === "totp" ? t("two.app") : t("two.passkey"));

/** @param {Item} factor @param {() => void} load */
function removeFactor(factor, load) {
  confirm({ title: t("two.remove_title", { name: factor.name || methodName(factor.method) }), text: t("two.remove_text"), action: t("users.remove"), danger: true, run: async () => { await post("/factors/remove", { id: factor.id }); load(); say(t("two.removed")); } });
}

function renewCodes() {
  confirm({ title: t("two.codes_new"), text: t("two.codes_new_text"), action: t("two.codes_new"), run: async () => showCodes((await post("/recovery-codes", {})).data.recovery_codes) });
}

/** @param {(codes?: string[]) => void} added */
async function addApp(added) {
  try {
    const { data } = await post("/factors/app", {});
    openDialog(({ close }) => h(App, { begun: data, added, close }));
  } catch (error) { sayError(error); }
}

/** @param {(codes?: string[]) => void} added */
async function addPasskey(added) {
  if (!window.isSecureContext || !window.PublicKeyCredential) return sayError(new Error(t("two.passkey_insecure")));
  try {
    const { data } = await post("/factors/passkey", {});
    const made = await createPasskey(data.options);
    openDialog(({ close }) => h(Named, { added, close, body: { id: data.id, ...made } }));
  } catch (error) {
    // Whoever closes the browser's own dialog knows that nothing happened.
    if (!(error instanceof DOMException && error.name === "NotAllowedError")) sayError(error);
  }
}

/** @param {{ begun: Item, added: (codes?: string[]) => void, close: () => void }} properties */
function App({ begun, added, close }) {
  const [typed, setTyped] = useState("");
  const [name, setName] = useState("");
  const run = async () => {
    const { data } = await post("/factors/confirm", { id: begun.id, code: typed.replace(/\s/g, ""), name: name.trim() });
    added(data.recovery_codes);
  };
  return h(Dialog, { title: t("two.add_app"), action: t("two.switch_on"), close, run, disabled: typed.replace(/\s/g, "").length < 6 },
    ol({ class: "numbered" }, li(null, t("two.step_scan")), li(null, t("two.step_code"))),
    img({ class: "qr", alt: t("two.qr"), width: 200, height: 200, src: `data:image/svg+xml,${encodeURIComponent(begun.qr)}` }),
    details({ class: "by-hand" }, summary(null, t("two.by_hand")), h(CopyBox, { value: begun.secret, label: t("two.secret") })),
    div({ class: "fields" },
      div({ class: "field" }, label({ for: "two-code" }, t("two.code")), h(TextBox, { id: "two-code", value: typed, length: 7, inputMode: "numeric", autocomplete: "one-time-code", onChange: setTyped })),
      div({ class: "field" }, label({ for: "two-name" }, t("two.name")), h(TextBox, { id: "two-name", value: name, length: 100, placeholder: t("two.name_example"), onChange: setName }))));
}

/** @param {{ body: Item, added: (codes?: string[]) => void, close: () => void }} properties */
function Named({ body, added, close }) {
  const [name, setName] = useState("");
  return h(Dialog, { title: t("two.add_passkey"), action: t("two.switch_on"), single: true, close, run: async () => added((await post("/factors/passkey/confirm", { ...body, name: name.trim() })).data.recovery_codes) },
    p(null, t("two.passkey_made")), div({ class: "field" }, label({ for: "two-name" }, t("two.name")), h(TextBox, { id: "two-name", value: name, length: 100, placeholder: t("two.name_example"), onChange: setName })));
}

/** @param {string[]} codes */
function showCodes(codes) {
  const text = codes.join("\n");
  openDialog(({ close }) => h(Dialog, { title: t("two.codes"), action: t("two.codes_kept"), single: true, close, run: async () => {} },
    p(null, t("two.codes_text")), pre({ class: "code codes" }, code(null, text)),
    div({ class: "actions" }, h(Button, { icon: "copy", onClick: () => void copy(text) }, t("once.copy")), h(Button, { icon: "download", href: `data:text/plain;charset=utf-8,${encodeURIComponent(text)}`, download: "kantoor-recovery-codes.txt" }, t("download")))));
}

/** @param {string} text */
const copy = (text) => navigator.clipboard?.writeText(text).then(() => say(t("once.copied")), () => {});
