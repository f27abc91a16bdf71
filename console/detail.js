// The generic page of a record: facts by group, linked records, and the actions that its state and the scopes allow.
import { useEffect, useState } from "preact/hooks";
import { post, remove, useLoad } from "./api.js";
import { addReason, endDeal, mayAddReason } from "./deal.js";
import { Deliveries, sendTest } from "./deliveries.js";
import { confirm } from "./dialog.js";
import { a, div, h, p, span } from "./html.js";
import { useKeys } from "./keys.js";
import { groupsOf } from "./form.js";
import { History } from "./history.js";
import { mergeMenu } from "./merge.js";
import { Missing } from "./missing.js";
import { Notes } from "./notes.js";
import { CopyBox, showOnce } from "./once.js";
import { Button, Card, Facts, Head, Menu, Pill, Skeleton, deleteLater, say, useTurn } from "./parts.js";
import { tasteOf } from "./resources.js";
import { go } from "./router.js";
import { can, itemPath, may, me, titleOf, valueOf } from "./schema.js";
import { LinkName, Value, ownName } from "./value.js";
import { actionName, doneText, fieldName, t, tableName, word } from "./words.js";

/** @typedef {import("./schema.js").Table} Table */
/** @typedef {import("./api.js").Item} Item */

/** @param {{ table: Table, id: string }} properties */
export function DetailPage({ table, id }) {
  const loaded = useLoad(itemPath(table, id));
  if (loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (!loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 8 }));
  return h(Record, { table, item: loaded.answer.data, etag: loaded.answer.etag });
}

/** @param {{ table: Table, item: Item, etag: string }} properties */
function Record({ table, item, etag }) {
  const edits = can(table, "patch");
  const editing = `${table.address}/${item.id}/edit`;
  const status = tasteOf(table.key).status ?? "status";
  useKeys(edits ? [{ key: "e", label: t("edit"), run: () => go(editing) }, ...(table.key === "deals" && item.status === "open" ? /** @type {const} */ (["win", "lose"]).map((how) => ({ key: how[0] ?? "", label: t(`action.${how}`), run: () => void endDeal(item, how) })) : [])] : []);
  const title = titleOf(table, item);
  const fields = table.fields.filter((field) => !(field.name === table.names?.[0] && valueOf(item, field.name) === title) && field.in?.includes("detail") && !["custom", "data", "rows", "lines"].includes(field.kind) && field.name !== status && field.name !== "updated_at" && field.name !== "created_at" && !["txt_name", "txt_value", "author_type"].includes(field.name));
  return div({ class: "page" },
    h(Head, { title: ownName(table.key, title) || tableName(table.key, 1), over: a({ href: table.address }, tableName(table.key)), beside: h(Pill, { table: table.key, field: status, value: item[status] }) },
      h(Actions, { table, item, etag }), edits ? h(Button, { icon: "edit", href: editing }, t("edit")) : null,
      h(Menu, { label: t("more"), icon: "more", items: table.key === "suppliers" ? mergeMenu(table, item, etag)
        : [{ label: t("board.add_reason"), icon: "note", hidden: table.key !== "deals" || item.status !== "lost" || !mayAddReason(), run: () => addReason(item) }, { label: t("delete"), icon: "trash", danger: true, hidden: !can(table, "delete"), run: () => removeItem(table, item, etag) }] })),
    div({ class: "columns" },
      div({ class: "column-main" }, groupsOf(table, fields.filter((field) => hasValue(valueOf(item, field.name)) && !(field.name === "duration_minutes" && valueOf(item, field.name) === 0))).map(([name, group]) => h(Card, { key: name, title: name ? word([`group.${name}`], name) : t("facts") },
        h(Facts, { facts: group.map((field) => /** @type {[string, import("./html.js").View]} */ ([fieldName(table.key, field.name), field.name === table.names?.[0] && field.kind === "text" ? ownName(table.key, String(valueOf(item, field.name))) : field.name === "author_id" ? h(Author, { item }) : h(Value, { table: table.key, field, value: valueOf(item, field.name) })])) }))),
        table.key === "deals" ? h(OfDeal, { item }) : null,
        table.key === "pipelines" ? h(Phases, { item }) : null,
        table.key === "email_domains" ? h(DnsRecord, { item }) : null,
        table.key === "webhook_endpoints" ? h(Deliveries, { id: item.id }) : null),
      div({ class: "column-side" }, table.key === "deals" ? h(Notes, { about: "deal_id", id: item.id }) : null, h(History, { table, item }))));
}

/** @param {{ item: Item }} properties */
function Author({ item }) {
  const type = valueOf(item, "author_type");
  return type === "operator" ? t("actor.operator") : h(LinkName, { table: type === "key" ? "keys" : "users", id: valueOf(item, "author_id") });
}

/** The tasks and documents of a deal, loaded when one is opened.
 * @param {{ item: Item }} properties */
function OfDeal({ item }) {
  const [shown, setShown] = useState(/** @type {typeof import("./related.js") | null} */ (null));
  useEffect(() => { void import("./related.js").then(setShown); }, []);
  return shown ? [h(shown.RelatedRecords, { key: "tasks", table: "tasks", link: "deal_id", item, always: true }), h(shown.Documents, { key: "documents", path: `/v1/deals/${item.id}`, link: "deal_id", item })] : null;
}

/** The phases of a pipeline.
 * @param {{ item: Item }} properties */
function Phases({ item }) {
  const [shown, setShown] = useState(/** @type {typeof import("./related.js") | null} */ (null));
  useEffect(() => { void import("./related.js").then(setShown); }, []);
  return shown ? h(shown.RelatedRecords, { table: "phases", link: "pipeline_id", item, always: true }) : null;
}

/** What the owner of a domain adds at their provider, to copy.
 * @param {{ item: Item }} properties */
function DnsRecord({ item }) {
  return h(Card, { title: t("domain.record"), class: "dns" }, p({ class: "soft" }, t(item.status === "verified" ? "domain.keep" : "domain.add")),
    [["txt_name", t("domain.name")], ["txt_value", t("domain.value")]].map(([name = "", label = ""]) => div({ key: name, class: "field" }, span({ class: "label" }, label), h(CopyBox, { value: item[name] ?? "", label }))));
}

/** @param {unknown} value */
const hasValue = (value) => value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);

/** Actions without a body that the state allows.
 * @param {{ table: Table, item: Item, etag: string }} properties */
function Actions({ table, item, etag }) {
  const [busy, take] = useTurn();
  const actions = (table.actions ?? []).filter((action) => may(action.scope) && (!action.takes?.length || BARE.includes(action.name)) && !action.name.includes("/") && fits(action.name, item));
  return actions.length === 0 ? null : div({ class: "actions" }, actions.map((action) => h(Button, { key: action.name, primary: action.name === "complete" || action.name === "approve", busy, onClick: () => run(action) }, actionName(table.key, action.name))));
  /** @param {import("./schema.js").Action} action */
  function run(action) {
    const path = action.path.replace("{id}", item.id);
    const send = async () => { const answer = await post(path, action.takes?.length ? {} : undefined, { etag }); showOnce(answer); say(doneText(table.key, action.name)); };
    if (table.key === "deals" && (action.name === "win" || action.name === "lose")) { const how = action.name; take(() => endDeal(item, how)); }
    else if (table.key === "webhook_endpoints" && action.name === "test") take(() => sendTest(itemPath(table, item.id)));
    else if (["complete", "reopen", "verify", "test", "retry"].includes(action.name)) take(send);
    else confirm({ title: actionName(table.key, action.name), text: word([`confirm.${table.key}.${action.name}`, `confirm.${action.name}`], t("confirm.text")), action: actionName(table.key, action.name), run: send });
  }
}

/** Actions whose body can be left out. */
const BARE = ["rotate"];

/** @param {string} action @param {Item} item */
function fits(action, item) {
  if (item.revoked_at) return false;
  const status = String(item.status ?? "");
  if (action === "complete" || action === "win" || action === "lose") return status === "open";
  if (action === "reopen") return status === "completed";
  if (action === "approve" || action === "reject") return status === "pending_approval" || status === "submitted";
  if (action === "cancel") return ["queued", "running", "waiting", "pending_approval", "retrying"].includes(status);
  if (action === "retry") return status === "failed";
  if (action === "invite") return status === "invited";
  if (action === "remove-two-factor") return status === "active" && item.id !== me.value.user.id;
  return action !== "adopt";
}

/** @param {Table} table @param {Item} item @param {string} etag */
export function removeItem(table, item, etag) {
  // A draft has no number that people know.
  const name = (item.meta?.generation_mode === "draft" && item.title) || ownName(table.key, titleOf(table, item)) || tableName(table.key, 1);
  const path = itemPath(table, item.id);
  const done = () => { go(table.address); say(t("deleted", { name })); };
  // What others may refer to is deleted at once, so that a refusal is heard at once.
  if (REFERRED.has(table.key)) confirm({ title: t("delete_one", { name }), text: t("delete_one.text"), action: t("delete"), danger: true, run: async () => { await remove(path, { etag, keep: true }); done(); } });
  else {
    go(table.address);
    deleteLater(t("deleted", { name }), item.id, path, etag);
  }
}

const REFERRED = new Set(["phases", "pipelines", "tax_rates", "corporate_identities", "ticket_statuses", "users", "files"]);
