// Deals as a board: a column per phase, cards that are dragged, moved by keys or by their menu. A move can be undone.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { post, useLoad } from "../api.js";
import { endDeal, sayLate } from "../deal.js";
import { daysUntil, money, moneyOfCents, nearDay } from "../format.js";
import { a, article, div, h, h2, p, section, span, strong } from "../html.js";
import { useKeys } from "../keys.js";
import { ExportButton } from "../list.js";
import { cents } from "../money.js";
import { Button, Empty, Head, Menu, Pill, Problem, Skeleton, Tabs, say } from "../parts.js";
import { go, place, restoreScroll } from "../router.js";
import { can, may, tables, valueOf } from "../schema.js";
import { given, t, tableName, word } from "../words.js";
import { LinkName } from "../value.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table }} properties */
export function Board({ table }) {
  const parameters = new URLSearchParams(place.value.query);
  const boards = useLoad("/v1/pipelines");
  const pipelines = /** @type {Item[] | undefined} */ (boards.answer?.data)?.filter((one) => one.active !== false);
  const columns = useLoad("/v1/phases");
  const phases = /** @type {Item[] | undefined} */ (columns.answer?.data);
  const chosen = pipelines?.find((one) => one.id === parameters.get("pipeline_id")) ?? pipelines?.[0];
  const loaded = useLoad(chosen ? `/v1/deals?status=open&pipeline_id=${chosen.id}&per_page=100` : null);
  const failed = [loaded, boards, columns].find((one) => one.error);
  const first = useLoad(loaded.answer?.data.length === 0 ? "/v1/deals?per_page=1" : null).answer?.meta.total === 0;
  // A deal without an open task has no follow-up; known for as many tasks as one page has.
  const tasks = useLoad(may("tasks.read") ? "/v1/tasks?status=open&per_page=100" : null).answer;
  const followed = tasks && (tasks.meta.total ?? 0) <= 100 ? new Set(tasks.data.map((/** @type {Item} */ task) => valueOf(task, "deal_id"))) : null;
  const moved = useSignal(/** @type {Record<string, string>} */ ({}));
  const dragged = useSignal("");
  const edits = can(table, "patch");
  const own = (phases ?? []).filter((phase) => phase.pipeline_id === chosen?.id).sort((one, other) => one.order - other.order);
  const deals = (/** @type {Item[]} */ (loaded.answer?.data ?? [])).map((deal) => /** @type {Item} */ ({ ...deal, phase_id: moved.value[deal.id] ?? deal.phase_id })).filter((deal) => moved.value[deal.id] !== "gone");
  const known = new Set(own.map((phase) => phase.id));
  // A deal of a pipeline without phases has none, nor has one whose phase is gone.
  const shown = deals.some((deal) => !known.has(deal.phase_id)) ? [{ id: "", name: t("board.no_phase") }, ...own] : own;
  const adds = tables.phases && can(tables.phases, "create") && chosen ? h(Button, { icon: "plus", href: `${tables.phases.address}/new?pipeline_id=${chosen.id}&order=${own.length + 1}` }, t("board.add_phase")) : null;
  const current = () => deals.find((deal) => deal.id === document.activeElement?.closest(".deal")?.id.slice(5));

  /** Shows a deal where the server has it.
   * @param {Item} deal */
  const back = (deal) => { const { [deal.id]: _, ...rest } = moved.value; moved.value = rest; };
  /** @param {Item} deal @param {string} phase @param {string} [etag] The version that an undo is about. */
  const move = async (deal, phase, etag) => {
    if (!phase || phase === deal.phase_id) return;
    const before = deal.phase_id;
    moved.value = { ...moved.value, [deal.id]: phase };
    requestAnimationFrame(() => focusCard(`deal-${deal.id}`));
    try {
      const answer = await post(`/v1/deals/${deal.id}/move`, { phase_id: phase }, { etag });
      const name = given(own.find((one) => one.id === phase)?.name);
      say(t("board.moved", { title: deal.title, phase: name }), before ? { undo: () => void move({ ...deal, phase_id: phase }, before, answer.etag) } : {});
    } catch (error) {
      back(deal);
      sayLate(deal, error);
    }
  };
  /** @param {Item | undefined} deal @param {"win" | "lose"} how */
  const end = async (deal, how) => {
    if (!deal) return;
    const next = nextCard(`deal-${deal.id}`);
    moved.value = { ...moved.value, [deal.id]: "gone" };
    requestAnimationFrame(() => focusCard(next));
    if (!(await endDeal(deal, how, () => back(deal)))) back(deal);
  };
  /** @param {number} step */
  const moveCurrent = (step) => {
    const deal = current();
    const at = own.findIndex((phase) => phase.id === deal?.phase_id);
    if (deal) void move(deal, own[at + step]?.id ?? "");
  };
  useKeys([{ key: "ArrowDown", label: t("board.between") }, { key: "ArrowUp", label: "" }, { key: "ArrowRight", label: "" }, { key: "ArrowLeft", label: "" }].map((one) => ({ ...one, run: () => step(one.key) })));
  useKeys(edits ? [
    { key: "Ctrl+Shift+ArrowRight", label: t("board.move") + " →", run: () => moveCurrent(1) }, { key: "Ctrl+Shift+ArrowLeft", label: t("board.move") + " ←", run: () => moveCurrent(-1) },
    { key: "m", label: t("board.move"), run: () => /** @type {HTMLElement | null | undefined} */ (document.activeElement?.closest(".deal")?.querySelector(".menu > button"))?.click() },
    { key: "t", label: t("board.task"), run: () => { const deal = current(); if (deal) go(`/tasks/new?deal_id=${deal.id}${deal.client_id ? `&client_id=${deal.client_id}` : ""}`); } },
    { key: "w", label: t("action.win"), run: () => void end(current(), "win") }, { key: "l", label: t("action.lose"), run: () => void end(current(), "lose") },
  ] : []);
  useEffect(() => { if (loaded.answer && phases) restoreScroll(); }, [loaded.answer !== null && phases !== undefined]);
  /** @param {Item} phase */
  const column = (phase) => {
    const cards = deals.filter((deal) => (phase.id ? deal.phase_id === phase.id : !known.has(deal.phase_id)));
    const sum = cards.reduce((total, deal) => total + cents(deal.amount), 0n);
    return section({ key: phase.id, class: "phase", "aria-label": given(phase.name),
      onDragOver: (event) => { event.preventDefault(); event.currentTarget.classList.add("over"); }, onDragLeave: (event) => event.currentTarget.classList.remove("over"),
      onDrop: (event) => { event.preventDefault(); event.currentTarget.classList.remove("over"); const deal = deals.find((one) => one.id === dragged.value); dragged.value = ""; if (deal && phase.id) void move(deal, phase.id); } },
      div({ class: "phase-head" }, h2(null, given(phase.name), span({ class: "count" }, ` ${cards.length}`)), span({ class: "phase-sum" }, moneyOfCents(sum))),
      cards.map((deal) => h(Card, { key: deal.id, deal, phases: own, edits, dragged, move, end, alone: followed !== null && !followed.has(deal.id) })),
      first && cards.length === 0 && phase === own[0] ? h(Example, null) : cards.length === 0 ? div({ class: "phase-empty" }, t("board.empty")) : null);
  };
  return div({ class: "page list-page" },
    h(Head, { title: tableName("deals"), beside: span({ class: "soft" }, deals.length ? moneyOfCents(deals.reduce((total, deal) => total + cents(deal.amount), 0n)) : "") },
      chosen && deals.length > 0 ? h(ExportButton, { resource: table.key, filters: { status: "open", pipeline_id: chosen.id } }) : null,
      h(Button, { quiet: true, icon: "columns", href: "/deals?view=list" }, t("board.list")),
      can(table, "create") ? h(Button, { primary: true, icon: "plus", href: `/deals/new${chosen ? `?pipeline_id=${chosen.id}` : ""}` }, word(["new.deals"], "")) : null),
    (pipelines?.length ?? 0) > 1 ? h(Tabs, { label: tableName("pipelines"), items: (pipelines ?? []).map((one) => ({ href: `/deals?pipeline_id=${one.id}`, label: given(one.name), current: one.id === chosen?.id })) }) : null,
    failed ? h(Problem, { error: failed.error, retry: failed.reload }) : null,
    loaded.answer && phases && own.length === 0 && shown.length > 0 ? div({ class: "notice" }, span(null, t("board.no_phases")), adds) : null,
    !loaded.answer || !phases ? failed ? null : h(Skeleton, { rows: 8 }) : shown.length === 0 ? h(Empty, { icon: "deals", title: t("board.no_phases"), text: t("board.no_phases_text") }, adds) : div({ class: "board", ...(deals.length === 0 ? { tabIndex: 0, role: "group", "aria-label": tableName("deals") } : {}) }, shown.map(column)),
    dragged.value ? div({ class: "drop-ends" }, dropEnd("win"), dropEnd("lose")) : null);
  /** @param {"win" | "lose"} how */
  function dropEnd(how) {
    return div({ class: how === "win" ? "drop-end" : "drop-end lost", onDragOver: (event) => event.preventDefault(), onDrop: (event) => { event.preventDefault(); const deal = deals.find((one) => one.id === dragged.value); dragged.value = ""; void end(deal, how); } }, word([`action.${how}`], how));
  }
}

/** @param {string} id */
const focusCard = (id) => /** @type {HTMLElement | null} */ (id ? document.querySelector(`[id="${id}"] a`) : document.querySelector("main h1"))?.focus();

/** The card that takes the place of one: the one below it, else the one above it, else any.
 * @param {string} id */
function nextCard(id) {
  const card = document.getElementById(id);
  const all = [...(card?.closest(".phase")?.querySelectorAll(".deal[id]") ?? [])];
  const at = card ? all.indexOf(card) : -1;
  return (all[at + 1] ?? all[at - 1] ?? [...document.querySelectorAll(".deal[id]")].find((one) => one !== card))?.id ?? "";
}

/** What a card looks like, and what it is for, until there is one. */
const Example = () => [article({ key: "example", class: "deal example" }, strong(null, t("board.example")), div({ class: "deal-line" }, span({ class: "amount" }, money("1500")))),
  p({ key: "text", class: "phase-empty" }, word(["empty.deals.text"], ""))];

/** Moves the focus to the next card in a direction.
 * @param {string} key */
function step(key) {
  const columns = [...document.querySelectorAll(".phase")].map((column) => [...column.querySelectorAll(".deal")]).filter((cards) => cards.length > 0);
  const now = document.activeElement?.closest(".deal") ?? null;
  const column = columns.findIndex((cards) => now && cards.includes(now));
  const row = now ? (columns[column]?.indexOf(now) ?? 0) : 0;
  const next = column < 0 ? columns[0]?.[0] : key === "ArrowDown" ? columns[column]?.[row + 1] : key === "ArrowUp" ? columns[column]?.[row - 1]
    : ((cards) => cards?.[Math.min(row, cards.length - 1)])(columns[column + (key === "ArrowRight" ? 1 : -1)]);
  /** @type {HTMLElement | null | undefined} */ (next?.querySelector("a"))?.focus();
}

/** @param {{ deal: Item, phases: Item[], edits: boolean, dragged: import("@preact/signals").Signal<string>, move: (deal: Item, phase: string) => Promise<void>, end: (deal: Item, how: "win" | "lose") => Promise<void>, alone: boolean }} properties `alone`: nothing is planned. */
function Card({ deal, phases, edits, dragged, move, end, alone }) {
  const late = deal.expected_close_date && daysUntil(deal.expected_close_date) < 0;
  return article({ class: "deal", id: `deal-${deal.id}`, draggable: edits,
    onDragStart: (event) => { event.dataTransfer?.setData("text/plain", deal.id); setTimeout(() => { dragged.value = deal.id; }); }, onDragEnd: () => { dragged.value = ""; } },
    a({ href: `/deals/${deal.id}`, draggable: false }, deal.title), span({ class: "soft" }, h(LinkName, { table: "clients", id: deal.client_id, plain: true })),
    div({ class: "deal-line" }, span({ class: "amount" }, money(deal.amount))),
    deal.expected_close_date || deal.priority === "high" || alone ? div({ class: "deal-line start" }, deal.expected_close_date ? span({ class: late ? "late" : "soft" }, nearDay(deal.expected_close_date)) : null, deal.priority === "high" ? h(Pill, { table: "deals", field: "priority", value: "high" }) : null, alone ? span({ class: "pill wait" }, t("board.no_followup")) : null) : null,
    edits ? h(Menu, { label: `${deal.title}: ${t("board.move")}`, icon: "more", quiet: true, items: [
      ...phases.filter((phase) => phase.id !== deal.phase_id).map((phase) => ({ label: given(phase.name), icon: "right", run: () => void move(deal, phase.id) })),
      { label: t("action.win"), icon: "check", run: () => void end(deal, "win") }, { label: t("action.lose"), icon: "close", run: () => void end(deal, "lose") },
    ] }) : null);
}
