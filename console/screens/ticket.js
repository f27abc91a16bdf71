// The inbox: tickets on the left, the conversation in the middle, the client on the right.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formKey, patch, post, useLoad } from "../api.js";
import { useDraft } from "../drafts.js";
import { ChoiceBox } from "../field.js";
import { SearchBox } from "../filters.js";
import { a, aside, button, div, h, h1, h2, label, section, span, textarea } from "../html.js";
import { Others } from "../here.js";
import { useMails } from "../history.js";
import { useKeys } from "../keys.js";
import { ExportButton, listFilters } from "../list.js";
import { Refusal, sayMailed } from "../mailed.js";
import { Missing } from "../missing.js";
import { Button, Card, Empty, Facts, Menu, Moment, Pill, Problem, Skeleton, Tabs, say, sayError, useTab, useTurn } from "../parts.js";
import { go, place, restoreScroll, wentBack } from "../router.js";
import { can, itemPath, may, me, tables, titleOf } from "../schema.js";
import { Related } from "./client.js";
import { choiceName, fieldName, t, tableName, word } from "../words.js";
import { LinkName, linked } from "../value.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table, id: string }} properties */
export function Inbox({ table, id }) {
  const query = place.value.query;
  const statuses = /** @type {Item[]} */ (useLoad("/v1/ticket-statuses").answer?.data ?? []).filter((status) => status.active !== false);
  const sort = table.sorts?.includes("last_message_at") ? "&sort=last_message_at&order=desc" : "";
  const loaded = useLoad(`/v1/tickets?per_page=50${query ? `&${query}` : ""}${sort}`);
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const at = rows.findIndex((row) => row.id === id);
  /** @param {number} step */
  const step = (step) => { const next = rows[at + step]; if (next) go(`/tickets/${next.id}${query ? `?${query}` : ""}`); };
  const searching = useRef(/** @type {HTMLInputElement | null} */ (null));
  useKeys([{ key: "/", label: t("list.search"), run: () => searching.current?.focus() }, { key: "j", label: t("list.next"), run: () => step(1) }, { key: "k", label: t("list.previous"), run: () => step(-1) }]);
  const parameters = new URLSearchParams(query);
  const now = parameters.get("status") ?? "";
  const mine = `assignee_id=${me.value.user.id}`;
  const none = loaded.answer && rows.length === 0;
  return div({ class: id ? "inbox reading" : "inbox" },
    section({ class: "inbox-list", "aria-label": tableName("tickets") },
      div({ class: "inbox-head" },
        div({ class: "inbox-title" }, id ? h2(null, tableName("tickets")) : h1({ tabIndex: -1 }, tableName("tickets")), div({ class: "line-end" }, none && !query ? null : h(ExportButton, { resource: table.key, filters: listFilters() }), can(table, "create") ? h(Button, { small: true, icon: "plus", href: "/tickets/new", name: word(["new.tickets"], t("new")) }, t("new")) : null)),
        h(Tabs, { label: t("list.views"), items: [{ href: "/tickets", label: t("ticket.all"), current: !now && !parameters.get("assignee_id") && !parameters.get("waiting") }, { href: "/tickets?waiting=true", label: t("field.waiting"), current: parameters.has("waiting") }, { href: `/tickets?${mine}`, label: t("ticket.mine"), current: query.includes(mine) }, ...statuses.map((status) => ({ href: `/tickets?status=${encodeURIComponent(status.name)}`, label: choiceName("tickets", "status", status.name), current: now === status.name }))] }),
        none && !query ? null : h(SearchBox, { box: searching, now: parameters.get("search") ?? "" })),
      div({ class: "inbox-rows" },
        loaded.error ? h(Problem, { error: loaded.error, retry: loaded.reload }) : null, !loaded.answer ? h(Skeleton, { rows: 8 }) : null,
        none ? nothing(parameters.has("search") || parameters.has("waiting")) : null,
        rows.map((row) => a({ key: row.id, class: waits(row) ? "inbox-row unanswered" : "inbox-row", href: `/tickets/${row.id}${query ? `?${query}` : ""}`, "aria-current": row.id === id ? "true" : undefined },
          span({ class: "who" }, row.client_name || (row.client_id ? h(LinkName, { table: "clients", id: row.client_id, plain: true }) : row.client_email || "–"), waits(row) ? span({ class: "hidden" }, ` (${t("ticket.unanswered")})`) : null), span({ class: "when" }, h(Moment, { at: row.meta?.last_message_at || row.created_at })), span({ class: "topic" }, row.subject),
          span({ class: "state" }, h(Pill, { table: "tickets", field: "status", value: row.status }), row.priority === "high" || row.priority === "urgent" ? h(Pill, { table: "tickets", field: "priority", value: row.priority }) : null, row.number))))),
    id ? h(Conversation, { key: id, table, id, statuses }) : none ? div({ class: "empty" }) : h(Empty, { icon: "tickets", title: t("ticket.choose"), text: t("ticket.choose_text") }));
}

/** @param {boolean} searched */
function nothing(searched) {
  if (searched) return h(Empty, { icon: "search", title: t("list.nothing_found"), text: t("list.nothing_found_text") }, h(Button, { href: "/tickets" }, t("list.clear")));
  const channels = tables.ticket_channels;
  return h(Empty, { icon: "tickets", title: t("ticket.none"), text: t("ticket.none_text") }, channels && can(channels, "list") ? h(Button, { icon: "mail", href: channels.address }, tableName("ticket_channels")) : null);
}

/** Whether the client had the last word.
 * @param {Item} row */
const waits = (row) => row.meta?.last_message_from === "client" && !/^closed$/i.test(row.status);

/** How far below the window the last message may end for whoever follows the conversation. */
const NEAR = 40;

/** @param {{ table: Table, id: string, statuses: Item[] }} properties */
function Conversation({ table, id, statuses }) {
  const loaded = useLoad(itemPath(table, id), { typing: true });
  const messages = useLoad(`${itemPath(table, id)}/messages`, { typing: true });
  const mails = useMails(may("invoices.read") ? `/v1/mails?about_id=${id}&limit=100` : null);
  const end = useRef(/** @type {HTMLDivElement | null} */ (null));
  const number = messages.answer?.data.length ?? 0;
  const [drawn, follows] = [useRef(0), useRef(true)];
  // The latest message is in view. Whoever reads further up, or comes back to where they were, stays there.
  useLayoutEffect(() => {
    const box = end.current;
    if (!box || !number) return;
    if (!drawn.current && wentBack.value && history.state?.scroll) { follows.current = false; restoreScroll(); }
    drawn.current = number;
    if (!follows.current) return;
    box.scrollTo(0, box.scrollHeight);
    box.lastElementChild?.scrollIntoView({ block: "nearest" });
  }, [number, mails.length, loaded.answer !== null]);
  useEffect(() => {
    const look = () => { const box = end.current; if (box?.lastElementChild) follows.current = box.lastElementChild.getBoundingClientRect().bottom < Math.min(innerHeight, box.getBoundingClientRect().bottom) + NEAR; };
    addEventListener("scroll", look, true);
    return () => removeEventListener("scroll", look, true);
  }, []);
  useTab(loaded.answer?.data.subject);
  const edits = can(table, "patch");
  useKeys(edits ? [
    { key: "s", label: t("ticket.status"), run: () => /** @type {HTMLElement | null} */ (document.querySelector(".conversation-head .menu > button"))?.click() },
    { key: "e", label: t("edit"), run: () => go(`/tickets/${id}/edit`) },
    { key: "a", label: t("ticket.assign"), run: () => document.getElementById("ticket-assignee")?.focus() },
  ] : []);
  if (loaded.error && !loaded.answer) return div({ class: "conversation" }, h(Missing, { table, error: loaded.error, retry: loaded.reload }));
  if (!loaded.answer) return div({ class: "conversation" }, h(Skeleton, { rows: 6 }));
  const item = loaded.answer.data;
  /** @param {Item} changes */
  const change = (changes) => patch(itemPath(table, id), changes).catch(sayError);
  return [
    section({ key: "talk", class: "conversation", "aria-label": item.subject },
      div({ class: "conversation-head" },
        div(null, div({ class: "over" }, a({ href: "/tickets" }, tableName("tickets")), ` · ${item.number}`), h1({ tabIndex: -1 }, item.subject), h(Others, { address: `/tickets/${id}` })),
        edits ? h(Menu, { label: t("ticket.status"), showLabel: true, items: statuses.map((status) => ({ label: choiceName("tickets", "status", status.name), icon: status.name === item.status ? "check" : "right", run: () => void change({ status: status.name }) })) }, h(Pill, { table: "tickets", field: "status", value: item.status })) : h(Pill, { table: "tickets", field: "status", value: item.status })),
      div({ class: "messages", ref: end, tabIndex: 0, role: "log", "aria-label": tableName("messages") }, (/** @type {Item[]} */ (messages.answer?.data ?? [])).map((message) => h(Message, { key: message.id, message, mails: message.direction === "out" ? mails.filter((mail) => mail.created_at === message.created_at) : [] }))),
      edits ? h(Reply, { item, statuses, sent: () => { follows.current = true; } }) : null),
    h(About, { key: "about", item, change: edits ? change : null }),
  ];
}

/** @param {Item} item @returns {Item | null} */
const clientOf = (item) => (item.client_id ? linked("clients", item.client_id).value ?? null : null);

/** The address for replies: that of the ticket, else that of its client.
 * @param {Item} item @returns {string} */
const emailOf = (item) => item.client_email || clientOf(item)?.email || "";

/** Who takes care of it.
 * @param {{ item: Item, change: ((changes: Item) => Promise<unknown>) | null }} properties */
function Assignee({ item, change }) {
  const users = /** @type {Item[]} */ (useLoad(may("users.read") ? "/v1/users?status=active&per_page=100" : null).answer?.data ?? []);
  const assigned = item.assignee_id ?? item.meta?.assignee_id ?? "";
  if (users.length === 0) return null;
  if (!change) return assigned ? h(Card, { title: fieldName("tickets", "assignee_id") }, h(LinkName, { table: "users", id: assigned, plain: true })) : null;
  return h(Card, null, div({ class: "field" }, label({ for: "ticket-assignee" }, fieldName("tickets", "assignee_id")),
    h(ChoiceBox, { id: "ticket-assignee", value: assigned, onChange: (value) => void change({ assignee_id: value || null }), options: [["", t("ticket.nobody")], ...users.map((user) => /** @type {[string, string]} */ ([user.id, user.name]))] })));
}

/** Shown as plain text: mail of strangers is never drawn as HTML.
 * @param {{ message: Item, mails: Item[] }} properties `mails` are those of a reply, one for each recipient. */
function Message({ message, mails }) {
  const note = message.type === "note";
  return div({ class: `message ${note ? "note" : message.direction}` },
    div({ class: "message-head" }, note ? span(null, t("ticket.note")) : null, span(null, message.author?.name || message.author?.email), h(Moment, { at: message.created_at })), div({ class: "bubble" }, message.body), mails.map((mail) => h(Mailed, { key: mail.id, mail })));
}

/** What became of the mail of a reply.
 * @param {{ mail: Item }} properties */
function Mailed({ mail }) {
  const [busy, take] = useTurn();
  const retry = async () => { await post(`/v1/mails/${mail.id}/retry`, undefined); say(t("mails.queued")); };
  return div({ class: "message-mail" },
    div(null, span({ class: mail.status === "failed" ? "late" : "soft" }, `${choiceName("mails", "status", mail.status)} · ${mail.recipient}`), h(Refusal, { mail })),
    mail.status === "failed" && may("invoices.write") ? h(Button, { small: true, busy, name: `${t("again")}: ${mail.recipient}`, onClick: () => take(retry) }, t("again")) : null);
}

/** @param {{ item: Item, statuses: Item[], sent: () => void }} properties */
function Reply({ item, statuses, sent }) {
  const draft = useDraft(`/tickets/${item.id}/reply`, "");
  const text = draft.value;
  const [kind, setKind] = useState(/** @type {"reply" | "note"} */ ("reply"));
  const [busy, setBusy] = useState(false);
  const [round, setRound] = useState(0);
  const key = useMemo(formKey, [round]);
  const box = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  /** @param {"reply" | "note"} next */
  const begin = (next) => { setKind(next); requestAnimationFrame(() => box.current?.focus()); };
  /** @param {string} role The role of the status that the ticket gets, or empty. */
  const send = async (role = "") => {
    if (busy || !text.trim()) return;
    setBusy(true);
    try {
      sent();
      await post(`/v1/tickets/${item.id}/messages`, { type: kind, body: text }, { key });
      const status = statuses.find((one) => one.role === role);
      if (status && status.name !== item.status) await patch(`/v1/tickets/${item.id}`, { status: status.name });
      draft.sent(text);
      setRound(round + 1);
      if (kind === "note") say(t("ticket.noted"));
      else if (emailOf(item)) sayMailed(t("ticket.sent"), emailOf(item));
      // It is in the ticket, but mailed to nobody.
      else say(t("ticket.unsent"), { error: true });
    } catch (error) {
      sayError(error);
    } finally {
      setBusy(false);
    }
  };
  useKeys([{ key: "r", label: t("ticket.reply"), run: () => begin("reply") }, { key: "i", label: t("ticket.note"), run: () => begin("note") }]);
  return div({ class: `reply ${kind}` },
    div({ class: "reply-tabs", role: "group" }, button({ type: "button", "aria-pressed": kind === "reply", onClick: () => begin("reply") }, t("ticket.reply")), button({ type: "button", "aria-pressed": kind === "note", onClick: () => begin("note") }, t("ticket.note"))),
    textarea({ ref: box, value: text, rows: 3, "aria-label": kind === "note" ? t("ticket.note") : t("ticket.reply"), placeholder: kind === "note" ? t("ticket.note_hint") : t("ticket.reply_hint", { name: item.client_name || (tables.clients && titleOf(tables.clients, clientOf(item) ?? {})) || item.client_email || "" }),
      onInput: (event) => draft.set(event.currentTarget.value),
      onKeyDown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); void send(); } } }),
    div({ class: "reply-foot" }, span({ class: "soft" }, kind === "note" ? t("ticket.note_hint") : emailOf(item)),
      kind === "note" ? h(Button, { busy, disabled: !text.trim(), onClick: () => void send() }, t("ticket.add_note"))
        : div({ class: "split" }, h(Button, { primary: true, icon: "send", busy, disabled: !text.trim(), onClick: () => void send() }, t("ticket.send")),
          h(Menu, { label: t("more"), icon: "down", primary: true, items: [{ label: t("ticket.send_wait"), icon: "hours", run: () => void send("waiting") }, { label: t("ticket.send_close"), icon: "check", run: () => void send("closed") }] }))));
}

/** @param {{ item: Item, change: ((changes: Item) => Promise<unknown>) | null }} properties */
function About({ item, change }) {
  const client = clientOf(item);
  return aside({ class: "inbox-side" },
    h(Assignee, { item, change }),
    h(Card, { title: item.client_id ? h(LinkName, { table: "clients", id: item.client_id }) : item.client_name || t("field.client_id"), actions: change ? h(Button, { small: true, quiet: true, icon: "edit", label: t("edit"), href: `/tickets/${item.id}/edit` }) : null },
      h(Facts, { facts: [[t("field.email"), emailOf(item) ? a({ href: `mailto:${emailOf(item)}` }, emailOf(item)) : ""], [t("field.phone"), client?.phone], [t("field.city"), client?.city], [t("field.priority"), choiceName("tickets", "priority", item.priority)], [t("field.source"), choiceName("tickets", "source", item.source ?? "")], [t("field.project_id"), item.project_id ? h(LinkName, { table: "projects", id: item.project_id }) : ""], [t("field.created_at"), h(Moment, { at: item.created_at })]] })),
    item.client_id && tables.invoices ? h(Related, { table: "invoices", id: item.client_id, few: true, alone: false }) : null,
    item.client_id ? h(Related, { table: "tickets", id: item.client_id, few: true, alone: false }) : null);
}
