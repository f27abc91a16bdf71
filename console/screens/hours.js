// Hours of a week: projects and activities as rows, days as columns, sums both ways. Typing in a cell saves it.
// What was submitted is approved in a view of its own.
import { useSignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, patch, post, reached, remove, useLoad } from "../api.js";
import { LinkBox } from "../combobox.js";
import { Dialog, confirm, openDialog, useTyped } from "../dialog.js";
import { dropDraft, keepDraft, readDraft } from "../drafts.js";
import { ChoiceBox, TextBox } from "../field.js";
import { hours, nearDay, plusDays, today } from "../format.js";
import { button, div, h, input, label, p, span, table as tableElement, tbody, td, tfoot, th, thead, tr } from "../html.js";
import { useKeys } from "../keys.js";
import { ExportButton } from "../list.js";
import { Button, Empty, Head, Pill, Problem, Restored, Skeleton, Tabs, say, sayError, useTurn } from "../parts.js";
import { place, setQuery } from "../router.js";
import { can, may, me, tables } from "../schema.js";
import { choiceName, language, t } from "../words.js";
import { Why, readMinutes } from "./project.js";
import { LinkName, linked } from "../value.js";

/** @typedef {import("../api.js").Item} Item */
/** @typedef {{ project: string, activity: string }} Line */

const MAX_PAGES = 5;
/** A dialog gives the focus back when it closes. */
const AFTER_DIALOG = 50;

export function Hours() {
  const [approval, setApproval] = useState(/** @type {typeof import("./approve.js") | null} */ (null));
  const approving = new URLSearchParams(place.value.query).get("view") === "approve";
  useEffect(() => { if (approving) void import("./approve.js").then(setApproval); }, [approving]);
  const waiting = useLoad("/v1/hours?status=submitted&per_page=1").answer?.meta.total ?? 0;
  const tabs = h(Tabs, { label: t("list.views"), items: [{ href: "/hours", label: t("hours.week"), current: !approving }, { href: "/hours?view=approve", label: t("hours.to_approve"), count: waiting || undefined, current: approving }] });
  if (!approving) return h(Week, { tabs });
  return approval ? h(approval.Approve, { tabs }) : div({ class: "page" }, h(Skeleton, { rows: 6 }));
}

/** @param {{ tabs: import("../html.js").View }} properties */
function Week({ tabs }) {
  const who = useWho();
  const monday = mondayOf(new URLSearchParams(place.value.query).get("week") ?? today());
  const days = Array.from({ length: 7 }, (_, place) => plusDays(monday, place));
  const entries = useSignal(/** @type {Item[] | null} */ (null));
  const added = useSignal(/** @type {Line[]} */ ([]));
  const error = useSignal(/** @type {unknown} */ (null));
  // What was typed and not saved yet, by project, activity and day.
  const cells = useSignal(/** @type {Record<string, string>} */ ({}));
  const restored = useSignal(false);
  const draftName = `/hours ${monday} ${who.id}`;
  const keep = () => {
    const saved = linesOf(entries.value ?? [], []).map(nameOf);
    const lines = added.value.filter((line) => !saved.includes(nameOf(line)));
    if (Object.keys(cells.value).length + lines.length === 0) { restored.value = false; return dropDraft(draftName); }
    keepDraft(draftName, () => ({ cells: cells.value, lines }));
  };
  /** @param {string} name @param {string | null} text */
  const setTyped = (name, text) => {
    const { [name]: _, ...others } = cells.value;
    cells.value = text === null ? others : { ...others, [name]: text };
    keep();
  };
  const edits = tables.projects ? can(tables.projects, "patch") : false;
  const load = async () => {
    try {
      entries.value = await ofWeek(monday, days[6] ?? monday, who.id);
      error.value = null;
    } catch (problem) { error.value = problem; }
  };
  useEffect(() => {
    const kept = readDraft(draftName)?.value;
    entries.value = null;
    added.value = kept?.lines ?? [];
    cells.value = kept?.cells ?? {};
    restored.value = Boolean(kept);
    void load();
  }, [monday, who.id]);
  const week = (/** @type {number} */ step) => setQuery({ week: plusDays(monday, 7 * step) });
  useKeys([{ key: "[", label: t("hours.previous"), run: () => week(-1) }, { key: "]", label: t("hours.next"), run: () => week(1) }]);
  // A phone shows one day at a time.
  const [picked, setPicked] = useState("");
  const single = picked && days.includes(picked) ? picked : days.includes(today()) ? today() : monday;
  const columns = narrow() ? [single] : days;
  const all = entries.value ?? [];
  const lines = linesOf(all, added.value);
  const name = new Intl.DateTimeFormat(language === "nl" ? "nl-NL" : "en-GB", { weekday: "short", timeZone: "UTC" });
  const drafts = all.filter((entry) => entry.status === "draft" || entry.status === "rejected");
  const submitted = all.filter((entry) => entry.status === "submitted");
  const [busy, take] = useTurn();
  /** @param {"submit" | "withdraw"} verb @param {Item[]} chosen */
  const move = async (verb, chosen) => {
    const { data } = await post(`/v1/hours/${verb}`, { ids: chosen.map((entry) => entry.id) });
    await load();
    if (data.refused?.length) throw new Error(data.refused[0].message);
    say(t(verb === "submit" ? "hours.submitted" : "hours.withdrawn"));
  };
  /** What cannot be read, or is not saved yet, would be left out: it gets the focus instead. */
  const submit = async () => {
    for (let look = 0; look < MAX_LOOKS && Object.keys(cells.value).length > 0 && !wrongCell(); look++) await new Promise((resume) => setTimeout(resume, AFTER_DIALOG));
    const unread = Object.keys(cells.value)[0];
    if (unread) {
      const wrong = Object.entries(cells.value).find(([, text]) => text.trim() && readMinutes(text) === null)?.[0] ?? unread;
      setPicked(wrong.slice(-DATE_LENGTH));
      setTimeout(() => (wrongCell() ?? document.querySelector(".week .unsaved"))?.focus(), AFTER_DIALOG);
      return;
    }
    const chosen = (entries.value ?? []).filter((entry) => entry.status === "draft" || entry.status === "rejected");
    confirm({ title: t("hours.submit_week"), text: t("hours.submit_text", { hours: hours(total(chosen)), from: nearDay(monday), to: nearDay(days[6]) }), action: t("hours.submit"), run: () => move("submit", chosen) });
  };
  const add = () => openDialog(({ close }) => h(AddLine, { close, add: (line) => {
    added.value = [...added.value, line];
    keep();
    const at = linesOf(entries.value ?? [], added.value).findIndex((one) => one.project === line.project && one.activity === line.activity);
    setTimeout(() => /** @type {HTMLTableElement | null} */ (document.querySelector(".week"))?.tBodies[0]?.rows[at]?.querySelector("input")?.focus(), AFTER_DIALOG);
  } }));
  const copy = async () => {
    const before = await ofWeek(plusDays(monday, -7), plusDays(monday, -1), who.id).catch(() => []);
    added.value = [...added.value, ...linesOf(before, [])];
    keep();
  };
  return div({ class: "page" },
    h(Head, { title: t("menu.hours"), beside: span({ class: "soft" }, `${nearDay(monday)} – ${nearDay(days[6])}`) }, who.box,
      div({ class: "week-steps" }, h(Button, { icon: "left", label: t("hours.previous"), onClick: () => week(-1) }), h(Button, { onClick: () => setQuery({ week: "" }) }, t("hours.this_week")), h(Button, { icon: "right", label: t("hours.next"), onClick: () => week(1) })),
      all.length > 0 ? h(ExportButton, { resource: "project_hours", filters: { from: monday, to: days[6] ?? monday, ...(who.id ? { user_id: who.id } : {}) } }) : null,
      edits ? h(Button, { icon: "plus", onClick: add }, t("hours.add")) : null, edits && drafts.length > 0 ? h(Button, { primary: true, busy, onClick: () => take(submit) }, t("hours.submit_week")) : edits && submitted.length > 0 ? h(Button, { busy, onClick: () => take(() => move("withdraw", submitted)) }, t("hours.withdraw")) : null),
    tabs, restored.value ? h(Restored, { discard: () => { added.value = []; cells.value = {}; keep(); } }) : null,
    narrow() ? div({ class: "week-days", role: "group", "aria-label": t("hours.day") }, days.map((one) => button({ key: one, type: "button", "aria-pressed": one === single, onClick: () => setPicked(one) }, span(null, name.format(new Date(one))), span(null, String(Number(one.slice(8)))), span({ class: "soft" }, dash(total(all.filter((entry) => entry.date === one))) || "\u00a0")))) : null,
    error.value ? h(Problem, { error: error.value, retry: () => void load() }) : null,
    all.map((entry) => h(Why, { key: entry.id, entry, about: `${choiceName("hours", "status", entry.status)}: ${nearDay(entry.date)}, ${entry.activity_name || t("project.work")}: ` })),
    entries.value === null ? h(Skeleton, { rows: 6 }) : lines.length === 0 ? div({ class: "card" }, h(Empty, { icon: "hours", title: t("hours.empty"), text: t("hours.empty_text") }, h(Button, { primary: true, icon: "plus", onClick: add }, t("hours.add")), h(Button, { onClick: () => void copy() }, t("hours.copy"))))
      : div({ class: "card list week-box" }, tableElement({ class: "week" },
        thead(null, tr(null, th({ scope: "col" }, t("field.project_id")), columns.map((one) => th({ key: one, scope: "col", class: `${dayClass(one)}${one === today() ? " now" : ""}` }, name.format(new Date(one)), span({ class: "soft" }, ` ${Number(one.slice(8))}`))), th({ scope: "col", class: "number" }, t("field.total_incl_vat")))),
        tbody(null, lines.map((line) => {
          const own = all.filter((entry) => entry.project === line.project && entry.activity_name === line.activity);
          return tr({ key: nameOf(line) }, th({ scope: "row" }, h(LinkName, { table: "projects", id: line.project }), line.activity ? div({ class: "soft" }, line.activity) : null),
            columns.map((one) => td({ key: one, class: dayClass(one) }, h(Cell, { line, date: one, typed: cells.value[`${nameOf(line)} ${one}`] ?? null, setTyped: (text) => setTyped(`${nameOf(line)} ${one}`, text), entries: own.filter((entry) => entry.date === one), day: all.filter((entry) => entry.date === one), user: who.id || me.value.user.id, edits, saved: load }))), td({ class: "number sum" }, hours(total(own))));
        })),
        tfoot(null, tr(null, th({ scope: "row" }, t("field.total_incl_vat")), columns.map((one) => td({ key: one, class: "number" }, dash(total(all.filter((entry) => entry.date === one))))), td({ class: "number sum" }, hours(total(all))))))));
}

/** @returns {HTMLElement | null} */
const wrongCell = () => document.querySelector(".week [aria-invalid=true]");
/** How often to look whether what was typed last is saved. */
const MAX_LOOKS = 40;
const DATE_LENGTH = 10;

const narrow = () => matchMedia("(max-width: 720px)").matches;

/** Today and the weekend stand out.
 * @param {string} date */
const dayClass = (date) => `number${date === today() ? " today" : [0, 6].includes(new Date(date).getUTCDay()) ? " weekend" : ""}`;

/** @param {number} minutes */
const dash = (minutes) => (minutes ? hours(minutes) : "");
/** @param {Item[]} entries */
const total = (entries) => entries.reduce((sum, entry) => sum + entry.minutes, 0);

/** A day of a person has at most 24 hours. */
const MAX_MINUTES = 24 * 60;

/** New hours are those of `user`. `day` has all hours of the date; `typed` is what is not saved yet.
 * @param {{ line: Line, date: string, typed: string | null, setTyped: (text: string | null) => void, entries: Item[], day: Item[], user: string, edits: boolean, saved: () => Promise<void> }} properties */
function Cell({ line, date, typed, setTyped, entries, day, user, edits, saved }) {
  const saving = useRef(false);
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  const project = linked("projects", line.project).value;
  const minutes = total(entries);
  const only = entries.length === 1 ? entries[0] : undefined;
  const locked = !edits || entries.length > 1 || (only && !["draft", "rejected"].includes(only.status));
  const next = typed === null ? minutes : typed.trim() === "" ? 0 : readMinutes(typed);
  const owner = only?.meta?.user_id ?? user;
  const tooMany = next !== null && next > minutes && next + total(day.filter((entry) => entry.id !== only?.id && entry.meta?.user_id === owner)) > MAX_MINUTES;
  const save = async () => {
    if (typed === null || next === null || tooMany || saving.current) return;
    if (next === minutes) return setTyped(null);
    saving.current = true;
    const path = `/v1/projects/${line.project}/hours`;
    try {
      if (only && next === 0) await remove(`${path}/${only.id}`);
      else if (only) await patch(`${path}/${only.id}`, { minutes: next });
      else await post(path, { date, minutes: next, user_id: user, ...(line.activity ? { activity_name: line.activity } : {}) });
      await saved();
      if (box.current?.value === typed || !box.current) setTyped(null);
    } catch (error) { sayError(error); } finally { saving.current = false; }
    // What was typed meanwhile, and left.
    if (box.current && box.current.value !== typed && document.activeElement !== box.current) setTimeout(() => void latest.current());
  };
  const latest = useRef(save);
  latest.current = save;
  // What could not be saved without a connection is saved when it is back.
  const wasReached = useRef(true);
  useEffect(() => {
    if (reached.value && !wasReached.current && document.activeElement !== box.current) void save();
    wasReached.current = reached.value;
  }, [reached.value]);
  /** The next cell of the week; the last one stays. */
  const onward = () => {
    const all = /** @type {HTMLElement[]} */ ([...(box.current?.closest("tbody")?.querySelectorAll("td input") ?? [])]);
    const following = all[all.indexOf(/** @type {HTMLElement} */ (box.current)) + 1];
    if (following) following.focus();
    else void save();
  };
  /** @param {number} across @param {number} down */
  const walk = (across, down) => {
    const cell = box.current?.closest("td");
    const row = cell?.parentElement;
    const rows = [...(row?.parentElement?.children ?? [])];
    const target = rows[rows.indexOf(/** @type {Element} */ (row)) + down]?.children[[...(row?.children ?? [])].indexOf(/** @type {Element} */ (cell)) + across];
    /** @type {HTMLElement | null | undefined} */ (target?.querySelector("input"))?.focus();
  };
  const status = entries.every((entry) => entry.status === entries[0]?.status) ? entries[0]?.status : "";
  const pill = minutes && status && status !== "draft" ? h(Pill, { table: "hours", field: "status", value: status }) : null;
  if (locked) return minutes ? span({ class: "locked" }, hours(minutes), pill) : null;
  return [input({
    ref: box, type: "text", inputMode: "decimal", class: only?.status === "rejected" ? "rejected" : typed !== null ? "unsaved" : "", "aria-label": [project?.name, line.activity, nearDay(date)].filter(Boolean).join(", "), "aria-invalid": next === null || tooMany || undefined,
    value: typed ?? dash(minutes), onInput: (event) => setTyped(event.currentTarget.value), onFocus: (event) => event.currentTarget.select(), onBlur: () => void save(),
    onKeyDown: (event) => {
      const moves = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] });
      const step = moves[event.key];
      if (event.key === "Escape") setTyped(null);
      else if (event.key === "Enter") onward();
      else if (step) walk(...step);
      else return;
      event.preventDefault();
    },
  }), tooMany || next === null ? p({ class: "wrong", role: "alert" }, t(tooMany ? "hours.too_many" : "hours.unclear")) : null, pill ? span({ class: "locked" }, pill) : null];
}

/** @param {{ close: () => void, add: (line: Line) => void }} properties */
function AddLine({ close, add }) {
  const draft = useTyped("hours", { project: "", activity: "" });
  const { project, activity } = draft.values;
  return h(Dialog, { title: t("hours.add"), action: t("hours.add"), close, run: async () => add({ project, activity }), draft, disabled: !project },
    div({ class: "field" }, label({ for: "add-project" }, t("field.project_id")), h(LinkBox, { id: "add-project", table: "projects", value: project, onChange: (value) => draft.set({ project: value }) })),
    div({ class: "field" }, label({ for: "add-activity" }, t("field.activity_name")), h(TextBox, { id: "add-activity", value: activity, length: 255, onChange: (value) => draft.set({ activity: value }) })));
}

/** Whose hours are shown: one's own, as soon as there are colleagues. */
function useWho() {
  const people = /** @type {Item[]} */ (useLoad(may("users.read") ? "/v1/users?status=active&per_page=100" : null).answer?.data ?? []);
  const chosen = new URLSearchParams(place.value.query).get("user_id");
  const id = chosen === "all" ? "" : chosen ?? (people.length > 1 ? me.value.user.id ?? "" : "");
  const box = people.length < 2 ? null : h(ChoiceBox, { id: "hours-who", label: t("hours.whose"), value: id || "all", onChange: (value) => setQuery({ user_id: value === me.value.user.id ? "" : value }), options: [...people.map((one) => /** @type {[string, string]} */ ([one.id, one.name || one.email])), ["all", t("audit.everybody")]] });
  return { id, box };
}

/** The hours of all projects between two days.
 * @param {string} from @param {string} to @param {string} user @returns {Promise<Item[]>} */
async function ofWeek(from, to, user) {
  /** @type {Item[]} */
  const all = [];
  for (let page = 1; page <= MAX_PAGES; page++) {
    const { data, meta } = await get(`/v1/hours?from=${from}&to=${to}&per_page=100&page=${page}${user ? `&user_id=${user}` : ""}`, { quiet: true });
    all.push(...data.map((/** @type {Item} */ entry) => ({ ...entry, project: entry.meta?.project_id })));
    if (page >= (meta.pages ?? 1)) break;
  }
  return all;
}

/** @param {Item[]} entries @param {Line[]} added @returns {Line[]} */
function linesOf(entries, added) {
  const all = [...entries.map((entry) => ({ project: entry.project, activity: entry.activity_name ?? "" })), ...added];
  return [...new Map(all.map((line) => [nameOf(line), line])).values()];
}

/** @param {Line} line */
const nameOf = (line) => `${line.project} ${line.activity}`;

/** @param {string} date */
function mondayOf(date) {
  const weekday = new Date(date).getUTCDay();
  return plusDays(date, -((weekday + 6) % 7));
}
