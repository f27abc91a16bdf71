// Users: who has access, with which role. The owner invites, changes roles, suspends and removes.
import { useMemo } from "preact/hooks";
import { formKey, patch, post, remove, useLoad } from "../api.js";
import { Dialog, confirm, openDialog, useTyped } from "../dialog.js";
import { ChoiceBox, TextBox } from "../field.js";
import { dayOf, nearDay } from "../format.js";
import { a, div, fieldset, h, input, label, legend, p, span, strong, table as tableElement, tbody, td, th, thead, tr } from "../html.js";
import { useMails } from "../history.js";
import { useKeys } from "../keys.js";
import { Refusal } from "../mailed.js";
import { showOnce } from "../once.js";
import { Button, Card, Empty, Head, Menu, Moment, Pill, Problem, Skeleton, say } from "../parts.js";
import { can, may, me } from "../schema.js";
import { initials } from "../shell.js";
import { choiceName, language, t, tableName, word } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

const ROLES = ["owner", "member", "bookkeeper", "reader"];

/** @param {{ table: Table }} properties */
export function Users({ table }) {
  const loaded = useLoad(`${table.path}?per_page=100`);
  const users = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const access = /** @type {Item[]} */ (useLoad("/v1/users/access").answer?.data ?? []);
  const invites = can(table, "create");
  const mails = useMails(may("invoices.read") && users.some((user) => user.status === "invited") ? "/v1/mails?limit=100" : null);
  const invite = () => openDialog(({ close }) => h(Invite, { table, close }));
  useKeys(invites ? [{ key: "n n", label: t("users.invite"), run: invite }] : []);
  return div({ class: "page" },
    h(Head, { title: tableName("users"), over: a({ href: "/settings" }, t("menu.settings")) }, invites ? h(Button, { primary: true, icon: "plus", onClick: invite }, t("users.invite")) : null),
    loaded.error && !loaded.answer ? h(Problem, { error: loaded.error, retry: loaded.reload }) : null,
    !loaded.answer && !loaded.error ? div({ class: "card" }, h(Skeleton, { rows: 4 })) : null,
    users.length > 0 ? div({ class: "card list" }, tableElement({ class: "table plain-rows" },
      thead(null, tr(null, th({ scope: "col" }, t("field.name")), th({ scope: "col", class: "status" }, t("field.role")), th({ scope: "col", class: "status" }, t("field.status")), th({ scope: "col", class: "when" }, t("users.since")), th({ scope: "col", class: "when moment" }, t("users.seen")), may("users.write") ? th({ scope: "col", class: "moment" }, t("users.two_step")) : null, th({ scope: "col", class: "menu-column" }, span({ class: "hidden" }, t("more"))))),
      tbody(null, users.map((user) => h(Row, { key: user.id, table, user, mail: mails.find((mail) => user.status === "invited" && mail.recipient === user.email), access: access.find((one) => one.user_id === user.id) ?? {} }))))) : null,
    users.length === 1 && invites ? div({ class: "card" }, h(Empty, { icon: "clients", title: t("users.alone"), text: t("users.alone_text") }, h(Button, { icon: "plus", onClick: invite }, t("users.invite")))) : null,
    may("users.write") ? h(Failed, { users }) : null,
    h(Roles, null));
}

/** Sign-ins that failed lately, if any.
 * @param {{ users: Item[] }} properties */
function Failed({ users }) {
  const failed = /** @type {Item[]} */ (useLoad("/v1/users/failed-sign-ins").answer?.data ?? []);
  if (failed.length === 0) return null;
  const nameOf = (/** @type {string} */ id) => { const user = users.find((one) => one.id === id); return user?.name || user?.email || ""; };
  return h(Card, { title: t("users.failed"), class: "list" }, tableElement({ class: "table plain-rows" },
    thead(null, tr(null, th({ scope: "col" }, t("field.name")), th({ scope: "col" }, t("users.failed_with")), th({ scope: "col" }, t("users.failed_from")), th({ scope: "col", class: "number" }, t("users.failed_count")), th({ scope: "col", class: "when moment" }, t("users.failed_last")))),
    tbody(null, failed.map((one) => tr({ key: `${one.user_id} ${one.reason} ${one.address} ${one.last_at}` },
      td({ class: "card-title" }, nameOf(one.user_id)), td({ class: "card-none" }, t(one.reason === "code" ? "users.failed_code" : "users.failed_password")), td({ class: "card-line-2" }, one.address || t("users.failed_anywhere")), td({ class: "number card-end" }, String(one.count)), td({ class: "when card-status" }, h(Moment, { at: one.last_at })))))));
}

/** @param {{ table: Table, user: Item, mail?: Item, access: Item }} properties */
function Row({ table, user, mail, access }) {
  const self = user.id === me.value.user.id;
  const edits = can(table, "patch");
  const name = user.name || user.email;
  return tr({ class: user.status === "suspended" ? "faded" : "" },
    td({ class: "card-title" }, div({ class: "person" }, span({ class: "avatar", "aria-hidden": "true" }, initials(name)), div(null, a({ href: `${table.address}/${user.id}` }, name), self ? span({ class: "soft" }, ` (${t("users.you")})`) : null, div({ class: "soft" }, user.email), mail ? h(Refusal, { mail }) : null))),
    td({ class: "card-end" }, choiceName("users", "role", user.role)),
    td({ class: "card-status" }, h(Pill, { table: "users", field: "status", value: user.status })),
    td({ class: "when card-none" }, nearDay(dayOf(user.created_at ?? user.meta?.created_at ?? ""))),
    td({ class: "when card-none" }, access.last_seen_at ? h(Moment, { at: access.last_seen_at }) : "–"),
    may("users.write") ? td({ class: "card-none" }, access.two_factor === undefined ? "" : access.two_factor ? span({ class: "pill good" }, t("users.on")) : span({ class: "pill calm" }, t("users.off"))) : null,
    td({ class: "menu-column" }, edits ? h(Menu, { label: `${t("more")}: ${name}`, icon: "more", quiet: true, items: actions(table, user, self) }) : null));
}

/** @param {Table} table @param {Item} user @param {boolean} self @returns {import("../parts.js").MenuItem[]} */
function actions(table, user, self) {
  const path = `${table.path}/${user.id}`;
  const name = user.name || user.email;
  /** @param {string} status @param {import("../words.js").Word} said */
  const setStatus = (status, said) => async () => { await patch(path, { status }); say(t(said, { name })); };
  return [
    { label: t("users.change"), icon: "edit", run: () => openDialog(({ close }) => h(Change, { table, user, close })) },
    { label: t("action.invite"), icon: "send", hidden: user.status !== "invited", run: () => confirm({ title: t("action.invite"), text: t("users.again_text", { email: user.email }), action: t("action.invite"), run: async () => { showOnce(await post(`${path}/invite`, undefined)); say(t("users.invited", { name })); } }) },
    { label: t("users.suspend"), icon: "close", hidden: self || user.status !== "active", run: () => confirm({ title: t("users.suspend_title", { name }), text: t("users.suspend_text"), action: t("users.suspend"), danger: true, run: setStatus("suspended", "users.suspended") }) },
    { label: t("users.restore"), icon: "check", hidden: user.status !== "suspended", run: () => confirm({ title: t("users.restore_title", { name }), text: t("users.restore_text"), action: t("users.restore"), run: setStatus("active", "users.restored") }) },
    { label: t("action.remove-two-factor"), icon: "settings", hidden: self || user.status === "invited", run: () => confirm({ title: t("action.remove-two-factor"), text: t("confirm.remove-two-factor"), action: t("action.remove-two-factor"), danger: true, run: async () => { await post(`${path}/remove-two-factor`, undefined); say(t("users.factors_removed", { name })); } }) },
    { label: t("users.remove"), icon: "trash", danger: true, hidden: self || !can(table, "delete"), run: () => confirm({ title: t("users.remove_title", { name }), text: t("users.remove_text"), action: t("users.remove"), danger: true, run: async () => { await remove(path); say(t("deleted", { name })); } }) },
  ];
}

/** @param {{ table: Table, close: () => void }} properties */
function Invite({ table, close }) {
  const draft = useTyped("invite", { email: "", name: "", role: "member", spoken: /** @type {string} */ (language) });
  const { email, name, role, spoken } = draft.values;
  const key = useMemo(formKey, []);
  const run = async () => {
    const body = { email: email.trim(), name: name.trim(), role, language: spoken };
    const answer = await post(table.path, body, { key });
    say(t("users.invited", { name: name.trim() || email.trim() }));
    showOnce(answer);
  };
  return h(Dialog, { title: t("users.invite"), action: t("users.invite_send"), close, run, draft, disabled: !email.trim() || !name.trim() },
    div({ class: "field" }, label({ for: "invite-name" }, t("field.name")), h(TextBox, { id: "invite-name", value: name, length: 255, onChange: (value) => draft.set({ name: value }) })),
    div({ class: "field" }, label({ for: "invite-email" }, t("field.email")), h(TextBox, { id: "invite-email", type: "email", value: email, length: 255, onChange: (value) => draft.set({ email: value }) })),
    h(RolePicker, { role, setRole: (value) => draft.set({ role: value }) }),
    div({ class: "field" }, label({ for: "invite-language" }, t("field.language")), h(ChoiceBox, { id: "invite-language", value: spoken, onChange: (value) => draft.set({ spoken: value }), options: [["nl", "Nederlands"], ["en", "English"]] })));
}

/** @param {{ table: Table, user: Item, close: () => void }} properties */
function Change({ table, user, close }) {
  const draft = useTyped(`user ${user.id}`, { name: String(user.name ?? ""), role: String(user.role) });
  const { name, role } = draft.values;
  const run = async () => {
    const body = { ...(name.trim() !== user.name ? { name: name.trim() } : {}), ...(role !== user.role ? { role } : {}) };
    if (Object.keys(body).length > 0) await patch(`${table.path}/${user.id}`, body);
    say(t("saved"));
  };
  return h(Dialog, { title: user.name || user.email, action: t("save"), close, run, draft, disabled: !name.trim() },
    div({ class: "field" }, label({ for: "user-name" }, t("field.name")), h(TextBox, { id: "user-name", value: name, length: 255, onChange: (value) => draft.set({ name: value }) })), h(RolePicker, { role, setRole: (value) => draft.set({ role: value }) }));
}

/** @param {{ role: string, setRole: (role: string) => void }} properties */
function RolePicker({ role, setRole }) {
  // Only somebody who may do everything can make an owner.
  const shown = ROLES.filter((one) => one !== "owner" || may("*.*"));
  return fieldset({ class: "field choice" }, legend(null, t("field.role")), div({ class: "radios column explained" }, shown.map((one) => label({ key: one },
    input({ type: "radio", name: "role", value: one, checked: role === one, onChange: () => setRole(one) }), span(null, strong(null, choiceName("users", "role", one)), span({ class: "soft" }, word([`role.${one}`], "")))))));
}

function Roles() {
  return div({ class: "card roles" }, strong(null, t("users.roles")), ROLES.map((role) => p({ key: role }, strong(null, choiceName("users", "role", role)), " ", span({ class: "soft" }, word([`role.${role}`], "")))));
}
