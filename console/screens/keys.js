// API keys: which programs have access, to what, and when they last used it.
import { useState } from "preact/hooks";
import { post, useLoad } from "../api.js";
import { Dialog, confirm, openDialog } from "../dialog.js";
import { ChoiceBox } from "../field.js";
import { dayOf, nearDay } from "../format.js";
import { a, code, div, h, label, p, pre, span, table as tableElement, tbody, td, th, thead, tr } from "../html.js";
import { useKeys } from "../keys.js";
import { showOnce } from "../once.js";
import { Button, Card, Empty, Head, Menu, Moment, Problem, Skeleton, say } from "../parts.js";
import { go } from "../router.js";
import { can, may } from "../schema.js";
import { scopesText } from "../value.js";
import { given, t, tableName } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table }} properties */
export function Keys({ table }) {
  const loaded = useLoad(`${table.path}?per_page=100`);
  const all = /** @type {Item[]} */ (loaded.answer?.data ?? []).map((key) => /** @type {Item} */ ({ ...key, name: given(key.name) }));
  const keys = [...all.filter((key) => !key.revoked_at), ...all.filter((key) => key.revoked_at)];
  const edits = may("keys.write");
  useKeys(edits ? [{ key: "n n", label: t("new.keys"), run: () => go(`${table.address}/new`) }] : []);
  const add = edits ? h(Button, { primary: true, icon: "plus", href: `${table.address}/new` }, t("new.keys")) : null;
  return div({ class: "page" },
    h(Head, { title: tableName("keys"), over: a({ href: "/settings" }, t("menu.settings")) }, h(Button, { quiet: true, icon: "files", href: "/docs", target: "_blank" }, t("keys.docs")), add),
    loaded.error && !loaded.answer ? h(Problem, { error: loaded.error, retry: loaded.reload }) : null,
    !loaded.answer && !loaded.error ? div({ class: "card" }, h(Skeleton, { rows: 4 })) : null,
    loaded.answer && keys.length === 0 ? div({ class: "card" }, h(Empty, { icon: "link", title: t("empty.keys"), text: t("keys.empty_text") }, add)) : null,
    keys.length > 0 ? div({ class: "card list" }, tableElement({ class: "table plain-rows" },
      thead(null, tr(null, th({ scope: "col" }, t("field.name")), th({ scope: "col" }, t("field.scopes")), th({ scope: "col", class: "when moment" }, t("field.last_used_at")), th({ scope: "col", class: "when" }, t("field.expires_at")), th({ scope: "col", class: "menu-column" }, span({ class: "hidden" }, t("more"))))),
      tbody(null, keys.map((key) => h(Row, { key: key.id, table, item: key, edits }))))) : null,
    h(Card, { title: t("keys.example") }, p({ class: "soft" }, t("keys.example_text")), pre({ class: "code" }, code(null, `curl -H "Authorization: Bearer kt_…" ${location.origin}/v1/invoices`))));
}

/** @param {{ table: Table, item: Item, edits: boolean }} properties */
function Row({ table, item, edits }) {
  const expired = item.expires_at && Date.parse(item.expires_at) < Date.now();
  const over = item.revoked_at || expired;
  return tr({ class: over ? "faded" : "" },
    td({ class: "card-title" }, a({ href: `${table.address}/${item.id}` }, item.name), div({ class: "soft mono" }, `${item.hint}…`)),
    td({ class: "card-line-2" }, span({ class: "phone-label" }, `${t("field.scopes")}: `), span({ title: (item.scopes ?? []).join(", ") }, scopesText(item.scopes ?? []))),
    td({ class: "when card-end" }, item.revoked_at ? span({ class: "pill calm" }, t("keys.revoked")) : item.last_used_at ? [span({ key: "label", class: "phone-label" }, `${t("field.last_used_at")}: `), h(Moment, { key: "at", at: item.last_used_at })] : span({ class: "soft" }, t("keys.never_used"))),
    td({ class: "when card-none" }, item.revoked_at ? nearDay(dayOf(item.revoked_at)) : item.expires_at ? span({ class: expired ? "late" : "" }, nearDay(dayOf(item.expires_at))) : span({ class: "soft" }, t("keys.never"))),
    td({ class: "menu-column" }, h(Menu, { label: `${t("more")}: ${item.name}`, icon: "more", quiet: true, items: keyActions(table, item, edits) })));
}

/** @param {Table} table @param {Item} item @param {boolean} edits @returns {import("../parts.js").MenuItem[]} */
function keyActions(table, item, edits) {
  const live = edits && !item.revoked_at;
  return [
    { label: t("edit"), icon: "edit", hidden: !live || !can(table, "patch"), href: `${table.address}/${item.id}/edit` },
    { label: t("action.rotate"), icon: "subscriptions", hidden: !live, run: () => openDialog(({ close }) => h(Rotate, { item, close })) },
    { label: t("history"), icon: "hours", href: `${table.address}/${item.id}` },
    { label: t("action.revoke"), icon: "trash", danger: true, hidden: !live, run: () => confirm({ title: t("keys.revoke_title", { name: item.name }), text: t("confirm.revoke"), action: t("action.revoke"), danger: true, run: async () => { await post(`/v1/api-keys/${item.id}/revoke`, undefined); say(t("keys.revoked_said", { name: item.name })); } }) },
  ];
}

const HOUR = 3600;

/** @param {{ item: Item, close: () => void }} properties */
export function Rotate({ item, close }) {
  const [overlap, setOverlap] = useState(String(24 * HOUR));
  const run = async () => showOnce(await post(`/v1/api-keys/${item.id}/rotate`, { overlap_seconds: Number(overlap) }));
  return h(Dialog, { title: t("keys.rotate_title", { name: given(item.name) }), action: t("action.rotate"), close, run }, p(null, t("keys.rotate_text")),
    div({ class: "field" }, label({ for: "rotate-overlap" }, t("keys.old_works")), h(ChoiceBox, { id: "rotate-overlap", value: overlap, onChange: setOverlap, options: [["0", t("keys.overlap_none")], [String(HOUR), t("keys.overlap_hour")], [String(24 * HOUR), t("keys.overlap_day")], [String(7 * 24 * HOUR), t("keys.overlap_week")]] })));
}
