// My account: language, theme, density, shortcuts, password, sessions.
import { useState } from "preact/hooks";
import { ApiError, patch, post, remove, useLoad } from "../api.js";
import { choose, chosen, useDraft } from "../drafts.js";
import { ChoiceBox, TextBox } from "../field.js";
import { div, fieldset, form, h, input, label, legend, li, p, span, strong, ul } from "../html.js";
import { Button, Card, Facts, Head, Moment, Problem, Restored, say, sayError } from "../parts.js";
import { me } from "../schema.js";
import { choiceName, t, word } from "../words.js";
import { TwoStep } from "./two_step.js";

export function Me() {
  const user = me.value.user;
  return div({ class: "page narrow" }, h(Head, { title: t("me.title") }),
    h(Card, { title: user.name }, h(Facts, { facts: [[t("field.email"), user.email], [t("field.role"), choiceName("users", "role", user.role ?? "")], [t("me.account"), me.value.account.name], [t("me.version"), me.value.version]] })),
    h(Name, null), h(Look, null), h(Password, null), h(TwoStep, null), h(Sessions, null));
}

function Name() {
  const draft = useDraft("/me/name", me.value.user.name ?? "");
  const name = draft.value;
  const save = async () => {
    try {
      me.value = (await patch("/v1/me", { name: name.trim() })).data;
      draft.saved(name);
      say(t("saved"));
    } catch (error) { sayError(error); }
  };
  return form({ onSubmit: (event) => { event.preventDefault(); void save(); } }, h(Card, { title: t("me.profile") }, draft.restored ? h(Restored, { discard: draft.drop }) : null,
    div({ class: "fields" }, div({ class: "field" }, label({ for: "me-name" }, t("field.name")), h(TextBox, { id: "me-name", value: name, length: 255, autocomplete: "name", onChange: draft.set }))),
    div({ class: "card-foot" }, h(Button, { type: "submit", disabled: !name.trim() || name.trim() === me.value.user.name }, t("save")))));
}

function Look() {
  const [, setRound] = useState(0);
  /** @param {string} name @param {string} value */
  const pick = (name, value) => { choose(name, value); document.documentElement.dataset[name] = value; setRound(Date.now()); };
  /** @param {string} value */
  const setLanguage = async (value) => {
    try {
      await patch("/v1/me", { language: value });
      location.reload();
    } catch (error) { sayError(error); }
  };
  /** @param {string} name @param {string[]} options @param {string} fallback */
  const radios = (name, options, fallback) => fieldset({ class: "field choice" }, legend(null, word([`me.${name}`], name)), div({ class: "radios" }, options.map((one) =>
    label({ key: one }, input({ type: "radio", name, checked: chosen(name, fallback) === one, onChange: () => pick(name, one) }), span(null, word([`me.${name}.${one}`], one))))));
  return h(Card, { title: t("me.look") }, div({ class: "fields" },
    div({ class: "field" }, label({ for: "me-language" }, t("field.language")), h(ChoiceBox, { id: "me-language", value: me.value.user.language, onChange: (value) => void setLanguage(value), options: [["nl", "Nederlands"], ["en", "English"]] })),
    radios("theme", ["auto", "light", "dark"], "auto"), radios("density", ["normal", "compact"], "normal"),
    div({ class: "field switch" }, input({ id: "me-keys", type: "checkbox", checked: chosen("single_keys", true), onChange: (event) => { choose("single_keys", event.currentTarget.checked); setRound(Date.now()); } }), label({ for: "me-keys" }, t("me.keys")))));
}

function Password() {
  const [old, setOld] = useState("");
  const [next, setNext] = useState("");
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      await post("/password", { current_password: old, password: next }, { keep: true });
    } catch (problem) {
      const known = problem instanceof ApiError ? problem : null;
      return setError(known?.status === 403 ? new Error(t("me.password_wrong")) : known?.details[0] ? new Error(known.details[0].message) : problem);
    } finally { setBusy(false); }
    setOld("");
    setNext("");
    say(t("me.password_changed"));
  };
  return form({ onSubmit: (event) => { event.preventDefault(); void save(); } }, h(Card, { title: t("me.password") }, error ? h(Problem, { error }) : null,
    div({ class: "fields" }, div({ class: "field" }, label({ for: "me-old" }, t("me.password_now")), h(TextBox, { id: "me-old", type: "password", autocomplete: "current-password", value: old, onChange: setOld })), div({ class: "field" }, label({ for: "me-next" }, t("me.password_new")), h(TextBox, { id: "me-next", type: "password", autocomplete: "new-password", value: next, onChange: setNext }), p({ class: "help" }, t("me.password_help")))),
    div({ class: "card-foot" }, h(Button, { type: "submit", busy, disabled: !old || next.length < 12 }, t("me.password_change")))));
}

function Sessions() {
  const sessions = /** @type {import("../api.js").Item[]} */ (useLoad("/v1/me/sessions").answer?.data ?? []);
  return h(Card, { title: t("me.sessions") }, ul({ class: "lines" }, sessions.map((session) => li({ key: session.id },
    div(null, strong(null, browserName(session.browser)), div({ class: "soft" }, session.address, " · ", h(Moment, { at: session.last_used_at }))),
    session.current ? span({ class: "pill good" }, t("me.this_one")) : h(Button, { small: true, onClick: () => void remove(`/v1/me/sessions/${session.id}`).then(() => say(t("me.session_ended")), sayError) }, t("me.end_session"))))),
    sessions.length > 1 ? div({ class: "card-foot" }, h(Button, { onClick: () => void post("/v1/me/sessions/end-others", undefined).then(() => say(t("me.others_ended")), sayError) }, t("me.end_others"))) : null);
}

/** @param {string} agent */
function browserName(agent) {
  const browser = /Edg\//.test(agent) ? "Edge" : /Firefox\//.test(agent) ? "Firefox" : /Chrome\//.test(agent) ? "Chrome" : /Safari\//.test(agent) ? "Safari" : agent.slice(0, 40);
  const system = /Android/.test(agent) ? "Android" : /iPhone|iPad/.test(agent) ? "iOS" : /Windows/.test(agent) ? "Windows" : /Mac OS/.test(agent) ? "macOS" : /Linux/.test(agent) ? "Linux" : "";
  return [browser, system].filter(Boolean).join(", ");
}
