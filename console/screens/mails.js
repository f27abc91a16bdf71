// Outgoing mail, newest first: what was sent, what failed and why, and trying again.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formKey, get, post, useLoad } from "../api.js";
import { tableOf } from "../change.js";
import { Dialog, openDialog } from "../dialog.js";
import { TextBox } from "../field.js";
import { isAhead, moment } from "../format.js";
import { a, div, h, label, p, pre, span, table as tableElement, tbody, td, th, thead, tr } from "../html.js";
import { Refusal, sayMailed } from "../mailed.js";
import { Button, Empty, Head, Moment, Pill, Problem, Skeleton, Tabs, say, useTurn } from "../parts.js";
import { place } from "../router.js";
import { may, me } from "../schema.js";
import { choiceName, said, t, tableName } from "../words.js";

/** @typedef {import("../api.js").Item} Item */
const LIMIT = 50;
const TABS = ["", "queued", "failed", "retrying", "sent", "stored"];

export function Mails() {
  const parameters = new URLSearchParams(place.value.query);
  const status = parameters.get("status") ?? "";
  const { mails, more, error, loading, next, again } = useMails(status, parameters.get("updated_from") ?? "");
  return div({ class: "page list-page" },
    h(Head, { title: t("mails.title"), over: a({ href: "/settings" }, t("menu.settings")) }, h(Button, { href: "/settings/email-domains", icon: "send" }, tableName("email_domains")), may("settings.write") ? h(Button, { icon: "mail", onClick: () => openDialog(({ close }) => h(Test, { close, done: again })) }, t("mails.test")) : null),
    h(Tabs, { label: t("list.views"), items: TABS.map((tab) => ({ href: `/settings/mail${tab ? `?status=${tab}` : ""}`, current: status === tab, label: tab ? choiceName("mails", "status", tab) : t("tab.all") })) }),
    error ? h(Problem, { error, retry: again }) : null,
    mails[0]?.status === "stored" ? div({ class: "notice" }, span(null, t("mails.stored"))) : null,
    mails.length === 0 && loading ? div({ class: "card" }, h(Skeleton, { rows: 6 })) : null,
    mails.length === 0 && !loading && !error ? div({ class: "card" }, h(Empty, { icon: "mail", title: status ? t("list.nothing_found") : t("mails.none"), text: status ? "" : t("mails.none_text") })) : null,
    mails.length > 0 ? div({ class: "card list" }, tableElement({ class: "table plain-rows mails" },
      thead(null, tr(null, th({ scope: "col" }, t("field.subject")), th({ scope: "col", class: "address" }, t("mails.to")), th({ scope: "col", class: "when" }, t("field.created_at")), th({ scope: "col", class: "status wide-status" }, t("field.status")), th({ scope: "col", class: "button-column" }, span({ class: "hidden" }, t("again"))))),
      tbody(null, mails.map((mail) => h(Row, { key: mail.id, mail, again }))))) : null,
    more ? div({ class: "audit-more" }, h(Button, { busy: loading, onClick: next }, t("mails.more"))) : null);
}

/** @param {{ close: () => void, done: () => void }} properties */
function Test({ close, done }) {
  const [to, setTo] = useState(/** @type {string} */ (me.value.user.email ?? ""));
  const key = useMemo(formKey, []);
  const run = async () => {
    await post("/v1/mails/test", { to: to.trim() }, { key });
    sayMailed(t("mails.test_sent", { to: to.trim() }), to.trim());
    done();
  };
  return h(Dialog, { title: t("mails.test"), action: t("action.send"), close, run, disabled: !to.trim() },
    div({ class: "field" }, label({ for: "test-to" }, t("mails.test_text")), h(TextBox, { id: "test-to", type: "email", value: to, onChange: setTo })));
}

/** @param {{ mail: Item, close: () => void }} properties */
function Text({ mail, close }) {
  const { answer, error } = useLoad(`/v1/mails/${mail.id}`);
  return h(Dialog, { title: mail.subject, action: t("close"), single: true, calm: true, wide: true, close, run: async () => {} },
    error ? h(Problem, { error }) : null, answer ? pre({ class: "code mail-text" }, answer.data.text) : error ? null : h(Skeleton, { rows: 4 }));
}

/** @param {{ mail: Item, again: () => void }} properties */
function Row({ mail, again }) {
  const table = mail.about_id ? tableOf(mail.about) : undefined;
  const [busy, take] = useTurn();
  const retry = async () => { await post(`/v1/mails/${mail.id}/retry`, undefined); say(t("mails.queued")); again(); };
  return tr(null,
    td({ class: "card-title grow" }, table ? a({ href: `${table.address}/${mail.about_id}` }, mail.subject) : mail.subject, h(Refusal, { mail }), mail.reason && !["sent", "stored", "failed", "retrying"].includes(mail.status) ? p({ class: "reason soft" }, said(mail.reason) || mail.reason) : null, mail.status === "queued" && isAhead(mail.leaves_at) ? p({ class: "reason soft" }, t("mails.leaves", { at: moment(mail.leaves_at) })) : null, mail.maybe_twice ? p({ class: "reason soft" }, t("mails.maybe_twice")) : null),
    td({ class: "card-line-2" }, mail.recipient), td({ class: "when card-none" }, h(Moment, { at: mail.created_at })),
    td({ class: "card-end" }, h(Pill, { table: "mails", field: "status", value: mail.status, tone: mail.status === "sent" ? "good" : undefined })),
    td({ class: "card-status" }, h(Button, { small: true, quiet: true, name: `${t("mails.show")}: ${mail.subject}, ${mail.recipient}`, onClick: () => openDialog(({ close }) => h(Text, { mail, close })) }, t("mails.show")), mail.status === "failed" && may("invoices.write") ? h(Button, { small: true, quiet: true, busy, name: `${t("again")}: ${mail.subject}, ${mail.recipient}`, onClick: () => take(retry) }, t("again")) : null));
}

/** @param {string} status @param {string} since The day on which the status changed at the earliest, or empty. */
function useMails(status, since) {
  const [state, setState] = useState(/** @type {{ mails: Item[], more: boolean, last: string, error: unknown, loading: boolean }} */ ({ mails: [], more: false, last: "", error: null, loading: true }));
  const round = useRef(0);
  /** @param {Item[]} mails @param {string} last */
  const load = (mails, last) => {
    const own = ++round.current;
    setState((before) => ({ ...before, loading: true, error: null }));
    get(`/v1/mails?limit=${LIMIT}${status ? `&status=${status}` : ""}${since ? `&updated_from=${since}` : ""}${last ? `&before=${last}` : ""}`).then(
      (answer) => { if (round.current === own) setState({ mails: [...mails, ...answer.data], more: Boolean(answer.meta.has_more), last: answer.meta.last_id ?? "", error: null, loading: false }); },
      (error) => { if (round.current === own) setState((before) => ({ ...before, error, loading: false })); });
  };
  useEffect(() => {
    setState({ mails: [], more: false, last: "", error: null, loading: true });
    load([], "");
    return () => { round.current++; };
  }, [status, since]);
  return { ...state, next: () => load(state.mails, state.last), again: () => load([], "") };
}
