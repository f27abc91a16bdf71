// The audit trail: every change, newest first, by person and kind of record; and what was different before.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post, useLoad } from "../api.js";
import { ChangeLine, RecordName, told } from "../change.js";
import { ChoiceBox, DayBox } from "../field.js";
import { a, div, h, li, ol, p, span, strong } from "../html.js";
import { Button, Empty, Head, Problem, Skeleton, sayError } from "../parts.js";
import { place, setQuery } from "../router.js";
import { may, tables } from "../schema.js";
import { count, day, dayOf } from "../format.js";
import { given, t, tableName } from "../words.js";

/** @typedef {import("../api.js").Item} Item */
const LIMIT = 50;
/** How often the progress of a verification is asked for, in milliseconds. */
const ASK_AGAIN = 1000;

export function Audit() {
  const query = new URLSearchParams(place.value.query);
  const filter = ["actor", "entity_type", "entity_id", "type", "day"].filter((name) => query.get(name)).map((name) => `&${name}=${encodeURIComponent(query.get(name) ?? "")}`).join("");
  const { lines, more, error, loading, next } = useChanges(filter);
  const [verified, setVerified] = useState(/** @type {Item | null} */ (null));
  const [verifying, setVerifying] = useState(false);
  const left = useRef(false);
  useEffect(() => () => { left.current = true; }, []);
  const verify = async () => {
    setVerifying(true);
    try {
      let found = (await post("/v1/audit/verification", undefined, { keep: true })).data;
      while (!left.current && found.state === "running") {
        setVerified(found);
        await new Promise((resume) => setTimeout(resume, ASK_AGAIN));
        found = (await get("/v1/audit/verification", { quiet: true })).data;
      }
      setVerified(found);
    } catch (error) { sayError(error); } finally { setVerifying(false); }
  };
  const people = /** @type {Item[]} */ (useLoad(may("users.read") ? "/v1/users?per_page=100" : null).answer?.data ?? []);
  const keys = /** @type {Item[]} */ (useLoad(may("keys.read") ? "/v1/api-keys?per_page=100" : null).answer?.data ?? []);
  const kinds = Object.values(tables).map((table) => /** @type {[string, string]} */ ([table.key === "keys" ? "api_key" : table.one, tableName(table.key)])).sort((one, other) => one[1].localeCompare(other[1]));
  const actors = [...people.map((one) => /** @type {[string, string]} */ ([one.id, one.name || one.email])), ...keys.map((one) => /** @type {[string, string]} */ ([one.id, `${t("actor.key")}: ${given(one.name)}`]))];
  return div({ class: "page narrow audit" },
    h(Head, { title: t("audit.title"), over: a({ href: "/settings" }, t("menu.settings")) }, h(Button, { icon: "check", busy: verifying, onClick: () => void verify() }, t("audit.verify"))),
    verified ? h(Verified, { verified }) : null,
    div({ class: "audit-filters" },
      actors.length > 0 ? h(ChoiceBox, { id: "audit-actor", label: t("audit.who"), value: query.get("actor") ?? "", onChange: (value) => setQuery({ actor: value }), options: [["", t("audit.everybody")], ...actors] }) : null,
      h(ChoiceBox, { id: "audit-kind", label: t("audit.kind"), value: query.get("entity_type") ?? "", onChange: (value) => setQuery({ entity_type: value, entity_id: "" }), options: [["", t("audit.every_kind")], ...kinds] }),
      h(DayBox, { id: "audit-day", label: t("audit.day"), placeholder: t("audit.day"), value: query.get("day") ?? "", onChange: (value) => setQuery({ day: value ?? "" }) }),
      filter ? h(Button, { quiet: true, onClick: () => setQuery({ actor: "", entity_type: "", entity_id: "", type: "", day: "" }) }, t("list.clear_filters")) : null),
    error ? h(Problem, { error }) : null,
    lines.length === 0 && loading ? div({ class: "card" }, h(Skeleton, { rows: 8 })) : lines.length === 0 && !more ? div({ class: "card" }, h(Empty, { icon: "search", title: t("list.nothing_found"), text: t("list.nothing_found_text") })) : null,
    byDay(told(lines)).map(([date, own]) => div({ key: date, class: "audit-day" }, strong({ class: "label" }, day(date)),
      div({ class: "card" }, ol({ class: "changes" }, own.map((change) => li({ key: change.seq }, h(ChangeLine, { change }, h(RecordName, { change, before: lines.find((other) => other.entity_id === change.entity_id && other.seq < change.seq && other.timestamp !== change.timestamp) })))))))),
    more ? div({ class: "audit-more" }, h(Button, { busy: loading, onClick: next }, t("audit.more"))) : null);
}

/** @param {{ verified: Item }} properties */
const Verified = ({ verified }) => (verified.state !== "done"
  ? div({ class: "notice", role: "status" }, t("audit.verifying", { done: count(verified.lines), all: count(verified.total) }))
  : verified.intact
  ? div({ class: "notice good", role: "status" }, span(null, t("audit.intact", { n: verified.lines, count: count(verified.lines) }), div({ class: "hash" }, `${t("audit.head")}: ${verified.head}`)))
  : div({ class: "problem", role: "alert" }, div(null, strong(null, t("audit.broken")), p(null, verified.problem))));

/** Lines of the log, page after page. A page may be empty while there is more.
 * @param {string} filter */
function useChanges(filter) {
  const [state, setState] = useState(/** @type {{ lines: Item[], more: boolean, last: number, error: unknown, loading: boolean }} */ ({ lines: [], more: false, last: 0, error: null, loading: true }));
  const round = useRef(0);
  /** @param {Item[]} lines @param {number} last @param {number} own */
  const load = (lines, last, own) => {
    setState((before) => ({ ...before, loading: true, error: null }));
    get(`/v1/changes?order=desc&limit=${LIMIT}${last ? `&before=${last}` : ""}${filter}`).then(
      (answer) => { if (round.current === own) setState({ lines: [...lines, ...answer.data], more: answer.meta.has_more, last: answer.meta.last_seq, error: null, loading: false }); },
      (error) => { if (round.current === own) setState((before) => ({ ...before, error, loading: false })); });
  };
  useEffect(() => {
    const own = ++round.current;
    setState({ lines: [], more: false, last: 0, error: null, loading: true });
    load([], 0, own);
    return () => { round.current++; };
  }, [filter]);
  return { ...state, next: () => load(state.lines, state.last, round.current) };
}

/** @param {Item[]} lines @returns {[string, Item[]][]} */
function byDay(lines) {
  /** @type {Map<string, Item[]>} */
  const days = new Map();
  for (const line of lines) {
    const date = dayOf(line.timestamp);
    days.set(date, [...(days.get(date) ?? []), line]);
  }
  return [...days];
}
