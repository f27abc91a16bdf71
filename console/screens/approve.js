// Hours to approve: by person and week, with their sums. Approved hours can be invoiced; rejected ones go back.
import { useState } from "preact/hooks";
import { post, useLoad } from "../api.js";
import { hours, nearDay, plusDays } from "../format.js";
import { button, div, h, li, span, strong, ul } from "../html.js";
import { Button, Card, Empty, Head, Icon, Problem, Skeleton, say, useTurn } from "../parts.js";
import { may } from "../schema.js";
import { LinkName } from "../value.js";
import { t } from "../words.js";
import { rejectHours } from "./project.js";

/** @typedef {import("../api.js").Item} Item */
/** @typedef {{ key: string, user: string, monday: string, entries: Item[] }} Group */

/** @param {{ tabs: import("../html.js").View }} properties */
export function Approve({ tabs }) {
  const loaded = useLoad("/v1/hours?status=submitted&per_page=100&sort=date&order=asc");
  const entries = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const groups = grouped(entries);
  // When one is decided, the next one moves to its place: a double click must not decide that too.
  const turn = useTurn();
  return div({ class: "page" }, h(Head, { title: t("menu.hours") }), tabs,
    loaded.error && !loaded.answer ? h(Problem, { error: loaded.error, retry: loaded.reload }) : null,
    !loaded.answer && !loaded.error ? h(Skeleton, { rows: 6 }) : null,
    loaded.answer && groups.length === 0 ? div({ class: "card" }, h(Empty, { icon: "check", title: t("approve.none"), text: t("approve.none_text") })) : null,
    groups.map((group) => h(Week, { key: group.key, group, turn })));
}

/** @param {{ group: Group, turn: ReturnType<typeof useTurn> }} properties */
function Week({ group, turn: [busy, take] }) {
  const [open, setOpen] = useState(false);
  const edits = may("projects.write");
  /** @param {"approve" | "reject"} verb @param {string[]} ids @param {{ reason?: string }} [reason] */
  const send = async (verb, ids, reason) => {
    const { data } = await post(`/v1/hours/${verb}`, { ids, ...reason });
    const refused = /** @type {Item[]} */ (data.refused ?? []);
    if (refused.length > 0) throw new Error(refused[0]?.message);
    say(t(verb === "approve" ? "approve.approved" : "approve.rejected"));
  };
  /** @param {"approve" | "reject"} verb @param {string[]} ids */
  const decide = (verb, ids) => {
    if (verb === "approve") return take(() => send(verb, ids));
    rejectHours(group.entries.filter((entry) => ids.includes(entry.id)), (reason) => send(verb, ids, reason));
  };
  const all = group.entries.map((entry) => entry.id);
  return h(Card, { class: "approve", title: [group.user ? h(LinkName, { key: "who", table: "users", id: group.user, plain: true }) : t("approve.nobody"), span({ key: "when", class: "soft" }, ` ${nearDay(group.monday)} – ${nearDay(plusDays(group.monday, 6))}`)],
    actions: [strong({ key: "sum", class: "approve-sum" }, hours(total(group.entries))), edits ? h(Button, { key: "reject", small: true, busy, onClick: () => decide("reject", all) }, t("hours.reject")) : null, edits ? h(Button, { key: "approve", small: true, primary: true, icon: "check", busy, onClick: () => decide("approve", all) }, t("action.approve")) : null] },
    ul({ class: "lines" }, byProject(group.entries).map(([project, own]) => li({ key: project }, h(LinkName, { table: "projects", id: project }), span({ class: "amount" }, hours(total(own)))))),
    button({ type: "button", class: "link disclose", "aria-expanded": open, onClick: () => setOpen(!open) }, h(Icon, { name: open ? "down" : "right" }), t("approve.per_day", { n: group.entries.length })),
    open ? ul({ class: "lines" }, group.entries.map((entry) => li({ key: entry.id },
      div(null, strong(null, nearDay(entry.date)), " ", h(LinkName, { table: "projects", id: entry.meta?.project_id }), entry.activity_name ? div({ class: "soft" }, entry.activity_name) : null),
      span({ class: "line-end" }, span({ class: "amount" }, hours(entry.minutes)), edits ? h(Button, { small: true, quiet: true, icon: "close", label: t("hours.reject"), busy, onClick: () => decide("reject", [entry.id]) }) : null, edits ? h(Button, { small: true, quiet: true, icon: "check", label: t("action.approve"), busy, onClick: () => decide("approve", [entry.id]) }) : null)))) : null);
}

/** @param {Item[]} entries */
const total = (entries) => entries.reduce((sum, entry) => sum + entry.minutes, 0);

/** @param {Item[]} entries @returns {Group[]} */
function grouped(entries) {
  /** @type {Map<string, Group>} */
  const groups = new Map();
  for (const entry of entries) {
    const user = entry.meta?.user_id ?? "";
    const monday = plusDays(entry.date, -((new Date(entry.date).getUTCDay() + 6) % 7));
    const key = `${user} ${monday}`;
    groups.set(key, { key, user, monday, entries: [...(groups.get(key)?.entries ?? []), entry] });
  }
  return [...groups.values()];
}

/** @param {Item[]} entries @returns {[string, Item[]][]} */
function byProject(entries) {
  return [...new Set(entries.map((entry) => entry.meta?.project_id ?? ""))].map((project) => [project, entries.filter((entry) => (entry.meta?.project_id ?? "") === project)]);
}
