// The editor of a flow: one column of steps, each a form by its fields; the same as JSON.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ApiError, formKey, get, newKey, post, put, useLoad } from "../api.js";
import { ChangedNotice, openConflict } from "../conflict.js";
import { keepDoubts, keptDoubts } from "../doubts.js";
import { changedSince, dropDraft, keepDraft, readDraft, saveTyped } from "../drafts.js";
import { ChoiceBox, TextBox } from "../field.js";
import { ErrorList } from "../form.js";
import { a, button, div, form, h, input, label, li, ol, p, span, strong, textarea } from "../html.js";
import { useKeys } from "../keys.js";
import { Missing } from "../missing.js";
import { Button, Card, Head, Icon, Menu, Restored, Skeleton, savedHere } from "../parts.js";
import { place } from "../router.js";
import { itemPath } from "../schema.js";
import { EVENTS, OPERATORS, STEP_TYPES, stepFieldName, stepFields, stepName } from "../steps.js";
import { choiceName, detailText, fieldName, lastOf, said, t, tableName, word } from "../words.js";
import { STEP_ICONS } from "./flow.js";
import { DurationBox, FieldBox, ScheduleBox, TemplateBox, ValueBox, changedCondition, useEventFields } from "./flow_fields.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: Table, id: string | null }} properties */
export function FlowEditor({ table, id }) {
  const loaded = useLoad(id ? itemPath(table, id) : null, { typing: true });
  if (id && loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (id && !loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 10 }));
  return h(Editing, { key: id ?? "new", table, item: loaded.answer?.data ?? null, etag: loaded.answer?.etag ?? "" });
}

/** @param {{ table: Table, item: Item | null, etag: string }} properties */
function Editing({ table, item, etag }) {
  const base = useRef({ item, etag });
  const draftName = place.value.path;
  const kept = useMemo(() => readDraft(draftName), []);
  const flow = useSignal(/** @type {Item} */ (withKeys({ ...beginning(item), ...kept?.value })));
  const touched = useSignal(kept !== null);
  const error = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const key = useMemo(formKey, []);
  const asJson = useSignal(false);
  // What the server doubts of what was saved: fields that the event does not have, values that they never have.
  const doubts = useSignal(keptDoubts(item?.id));
  /** @param {Item} changes */
  const set = (changes) => { forget(Object.keys(changes)); change(changes); };
  /** @param {Item} changes */
  const change = (changes) => { flow.value = { ...flow.value, ...changes }; touched.value = true; keepDraft(draftName, () => changedSince(beginning(base.current.item), plain(flow.value))); };
  /** What was wrong with a field is gone once it is changed.
   * @param {string[]} paths */
  const forget = (paths) => {
    doubts.value = doubts.value.filter((one) => !paths.some((path) => isAt(path, one)));
    const problem = error.value;
    if (!(problem instanceof ApiError)) return;
    const left = problem.details.filter((one) => !paths.some((path) => isAt(path, one)));
    if (left.length < problem.details.length) error.value = left.length ? new ApiError(problem.status, problem.code, problem.message, left, problem.requestId) : null;
  };
  /** Shows the flow as it is on the server.
   * @param {Item | null} now @param {string} version */
  const follow = (now, version) => { base.current = { item: now, etag: version }; flow.value = withKeys(beginning(now)); touched.value = false; };
  // Untouched, the editor follows the flow.
  useEffect(() => { if (item && !touched.value && etag !== base.current.etag) follow(item, etag); }, [etag]);
  useEffect(() => { if (doubts.value.length > 0) focusDoubt(); }, []);
  const steps = /** @type {Item[]} */ (flow.value.steps);
  const fields = useEventFields(flow.value.trigger_type === "event" ? flow.value.trigger_key : "");
  /** @param {number} at @param {Item} changes */
  const setStep = (at, changes) => { forget(Object.keys(changes).map((name) => `steps[${at}].${name}`)); change({ steps: steps.map((step, place) => (place === at ? { ...step, ...changes } : step)) }); };
  /** @param {number} at @param {string} type */
  const insert = (at, type) => set({ steps: [...steps.slice(0, at), { type, key: newKey(), ...(type === "condition" ? { conditions: [{ field: "record.", op: "eq", value: "" }] } : {}) }, ...steps.slice(at)] });
  /** @param {number} at @param {number} by */
  const move = (at, by) => { const all = [...steps]; const to = at + by; if (to < 0 || to >= all.length) return; all.splice(to, 0, ...all.splice(at, 1)); set({ steps: all }); };
  const save = async () => {
    if (busy.value) return;
    busy.value = true;
    error.value = null;
    let body = plain(flow.value);
    const here = savedHere();
    const send = async () => {
      body = plain(flow.value);
      const made = base.current.item;
      // A flow is replaced as a whole; what has no control here stays as it was.
      const answer = made ? await put(itemPath(table, made.id), { category: made.category, max_attempts: made.meta?.max_attempts, ...body }, { etag: base.current.etag }) : await post(table.path, { ...body, active: false }, { key });
      return { ...answer, id: answer.data.id ?? made?.id };
    };
    /** @param {{ id: string }} saved */
    const continueAfter = async ({ id }) => {
      const saved = await get(itemPath(table, id));
      base.current = { item: saved.data, etag: saved.etag };
    };
    try {
      const answer = await saveTyped({ draft: draftName, typed: () => flow.value, left: here.left, send, next: continueAfter });
      const { own, fields, rest } = keepDoubts(answer.id, answer);
      if (own.length === 0) return void here.open(`/flows/${answer.id}`, answer);
      // They are shown where they can be mended.
      await continueAfter(answer);
      touched.value = false;
      doubts.value = own;
      here.open(`/flows/${answer.id}/edit`, rest, { text: t("flow.saved_doubts", { n: fields }) });
      requestAnimationFrame(focusDoubt);
    } catch (problem) {
      const now = base.current.item;
      if (now && problem instanceof ApiError && problem.status === 412) return await merge(now.id, changedSince(beginning(now), body) ?? {});
      if (here.missed(problem)) return;
      error.value = problem;
      scrollTo({ top: 0, behavior: "smooth" });
    } finally { busy.value = false; }
  };
  /** Somebody else saved in between: what only they changed is theirs, of what both changed people choose.
   * @param {string} id @param {Item} mine */
  const merge = async (id, mine) => {
    const theirs = await get(itemPath(table, id));
    openConflict({ table, mine, base: beginning(base.current.item), theirs: { ...theirs, data: { ...theirs.data, ...beginning(theirs.data) } }, done: (merged) => {
      follow(theirs.data, theirs.etag);
      set(withKeys({ ...plain(flow.value), ...merged }));
      // After this attempt, which is still busy.
      setTimeout(() => void save());
    } });
  };
  useKeys([{ key: "Ctrl+s", label: t("save"), run: () => void save(), always: true }]);
  const wrong = error.value instanceof ApiError ? error.value.details : [];
  /** What is wrong with a field of a step, or of the flow.
   * @param {string} field @param {number} [at] */
  const fault = (field, at) => {
    const detail = wrong.find((one) => isAt(pathOf(field, at), one));
    return detail ? detailText(detail) : "";
  };
  /** @param {string} field @param {number} [at] */
  const doubt = (field, at) => doubts.value.filter((one) => isAt(pathOf(field, at), one)).map((one) => doubtText(one.message, fields)).join(" ");
  /** The control of an error.
   * @param {string} path */
  const controlOf = (path) => {
    const [, place, field = ""] = /^steps\[(\d+)\](?:\.(\w+))?/.exec(path) ?? [];
    const step = steps[Number(place)];
    if (place && step) return { id: `${step.key}-${field}`, name: [t("flow.step_n", { n: Number(place) + 1 }), field ? stepFieldName(step.type, field) : ""].filter(Boolean).join(", ") };
    return CONTROLS[path] ? { id: CONTROLS[path], name: fieldName("flows", path) } : undefined;
  };
  /** @param {string} field @param {string} id */
  const faultLine = (field, id) => (fault(field) ? p({ class: "wrong", id: `${id}-error` }, fault(field)) : null);
  /** @param {number} at */
  const adding = (at) => li({ key: `add ${at}`, class: "flow-add" }, h(Menu, { label: t("flow.add_step"), icon: "plus", quiet: true, align: "left", showLabel: at === steps.length, items: STEP_TYPES.map((type) => ({ label: stepName(type), icon: STEP_ICONS[type], run: () => insert(at, type) })) }));
  return form({ class: "page narrow editor", noValidate: true, onSubmit: (event) => { event.preventDefault(); void save(); } },
    h(Head, { title: item ? item.name : word(["new.flows"], ""), over: a({ href: "/flows" }, tableName("flows")) }, h(Button, { quiet: true, onClick: () => { asJson.value = !asJson.value; } }, asJson.value ? t("flow.as_form") : "JSON"), h(Button, { href: item ? `/flows/${item.id}` : "/flows", onClick: () => dropDraft(draftName) }, t("cancel")), h(Button, { type: "submit", primary: true, busy: busy.value }, t("save"))),
    kept && touched.value ? h(Restored, { discard: () => { dropDraft(draftName); follow(item, etag); } }) : null,
    item && touched.value && etag !== base.current.etag && !busy.value ? h(ChangedNotice, { table, item }) : null,
    error.value ? h(ErrorList, { table, error: error.value, fields: [], find: controlOf }) : null,
    h(Card, null, div({ class: "fields" },
      div({ class: "field" }, label({ for: "flow-name" }, t("field.name")), h(TextBox, { id: "flow-name", value: flow.value.name, length: 255, invalid: Boolean(fault("name")), onChange: (name) => set({ name }) }), faultLine("name", "flow-name")),
      div({ class: "field" }, label({ for: "flow-description" }, t("field.description")), h(TextBox, { id: "flow-description", value: flow.value.description, onChange: (description) => set({ description }) })),
      div({ class: "field" }, label({ for: "flow-type" }, t("field.trigger_type")), h(ChoiceBox, { id: "flow-type", value: flow.value.trigger_type, onChange: (type) => set({ trigger_type: type, trigger_key: "" }), options: ["event", "custom", "schedule"].map((one) => /** @type {[string, string]} */ ([one, choiceName("flows", "trigger_type", one)])) })),
      div({ class: "field" }, label({ for: "flow-key" }, t("field.trigger_key")), flow.value.trigger_type === "event" ? h(ChoiceBox, { id: "flow-key", invalid: Boolean(fault("trigger_key")), value: flow.value.trigger_key, onChange: (key) => set({ trigger_key: key }), options: EVENTS.map((one) => /** @type {[string, string]} */ ([one, word([`trigger.${one}`], one)])) }) : flow.value.trigger_type === "schedule" ? h(ScheduleBox, { id: "flow-key", value: flow.value.trigger_key, onChange: (key) => set({ trigger_key: key }) }) : h(TextBox, { id: "flow-key", value: flow.value.trigger_key, placeholder: "order.shipped", onChange: (key) => set({ trigger_key: key }) }), faultLine("trigger_key", "flow-key"))),
      div({ class: "flow-conditions" }, faultLine("conditions", "flow-conditions"), doubt("conditions") ? p({ class: "doubt" }, doubt("conditions")) : null, h(Conditions, { id: "flow-conditions", conditions: flow.value.conditions, root: "data.", fields, onChange: (conditions) => set({ conditions }) }))),
    asJson.value ? h(Card, { title: "JSON" }, h(JsonBox, { label: t("field.steps"), value: plain(flow.value).steps, onChange: (list) => set({ steps: withKeys({ steps: list }).steps }) }))
      : ol({ class: "flow-editor" }, steps.map((step, at) => [adding(at), li({ key: step.key, class: "card flow-edit", onKeyDown: (event) => { if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown") && !(event.target instanceof HTMLSelectElement)) { event.preventDefault(); move(at, event.key === "ArrowUp" ? -1 : 1); } } },
        div({ class: "card-head" }, span({ class: "attention-icon" }, h(Icon, { name: STEP_ICONS[step.type] ?? "right" })), strong(null, `${at + 1}. ${stepName(step.type)}`),
          span({ class: "actions" }, h(Button, { small: true, quiet: true, icon: "up", label: t("flow.up"), disabled: at === 0, onClick: () => move(at, -1) }), h(Button, { small: true, quiet: true, icon: "down", label: t("flow.down"), disabled: at === steps.length - 1, onClick: () => move(at, 1) }), h(Button, { small: true, quiet: true, icon: "close", label: t("delete"), onClick: () => set({ steps: steps.filter((_, place) => place !== at) }) }))),
        // What belongs to no control of the step stands above them.
        wrong.filter((detail) => detail.field.startsWith(`steps[${at}]`) && !stepFields(step).some((field) => detail.field.startsWith(`steps[${at}].${field.name}`))).map((detail) => p({ key: detail.field, class: "wrong" }, detailText(detail))),
        doubts.value.filter((one) => one.field === `steps[${at}]`).map((one) => p({ key: one.message, class: "doubt" }, doubtText(one.message, fields))),
        div({ class: "fields" }, stepFields(step).map((field) => h(StepControl, { key: field.name, step, field, fields, error: fault(field.name, at), doubt: doubt(field.name, at), id: `${step.key}-${field.name}`, onChange: (value) => setStep(at, { [field.name]: value }) }))))]), adding(steps.length)),
    p({ class: "help" }, t("flow.placeholders")));
}

/** @param {string} message @param {import("./flow_fields.js").EventField[]} fields */
function doubtText(message, fields) {
  const [, why = message, meant] = /^(.+?)(?:; did you mean '(.+)'\?)?$/s.exec(message) ?? [];
  const name = meant && (fields.find((field) => lastOf(field.path) === meant)?.name ?? meant);
  return [said(why) || why, name ? t("flow.did_you_mean", { name }) : ""].filter(Boolean).join(" ");
}

const focusDoubt = () => /** @type {HTMLElement | null} */ (document.querySelector(".editor [aria-describedby$=-doubt]"))?.focus();

/** @param {string} field @param {number} [at] The place of its step. */
const pathOf = (field, at) => (at === undefined ? field : `steps[${at}].${field}`);
/** Whether something is said of a field or a part of it.
 * @param {string} path @param {{ field: string }} about */
const isAt = (path, { field }) => field === path || field.startsWith(`${path}[`) || field.startsWith(`${path}.`);

/** The controls of the fields of a flow. @type {Record<string, string>} */
const CONTROLS = { name: "flow-name", description: "flow-description", trigger_type: "flow-type", trigger_key: "flow-key" };

/** @param {{ step: Item, field: import("../steps.js").StepField, fields: import("./flow_fields.js").EventField[], error: string, doubt: string, id: string, onChange: (value: any) => void }} properties */
function StepControl({ step, field, fields, error, doubt, id, onChange }) {
  const wrong = error ? p({ class: "wrong", id: `${id}-error` }, error) : doubt ? p({ class: "doubt", id: `${id}-doubt` }, doubt) : null;
  const shared = { id, invalid: error !== "", describedBy: error ? `${id}-error` : doubt ? `${id}-doubt` : undefined };
  const name = stepFieldName(step.type, field.name);
  const value = step[field.name];
  if (field.kind === "boolean") return div({ class: "field switch" }, input({ id, type: "checkbox", checked: Boolean(value), onChange: (event) => onChange(event.currentTarget.checked) }), label({ for: id }, name), wrong);
  if (field.kind === "conditions") return div({ class: "field wide", id, tabIndex: -1 }, wrong, h(Conditions, { id, conditions: value ?? [], root: "record.", fields, onChange }));
  if (field.kind === "duration") return div({ class: "field" }, label({ for: id }, name), h(DurationBox, { id, value: value ?? "", onChange, dayOnly: field.name === "deadline" }), wrong);
  const control = field.kind === "choice" ? h(ChoiceBox, { ...shared, value, empty: true, onChange, options: (field.choices ?? []).map((one) => /** @type {[string, string]} */ ([one, word([`mail.${one}`], choiceName("steps", field.name, one))])) })
    : field.kind === "json" ? h(JsonBox, { id, label: name, value: value ?? {}, onChange }) : h(TemplateBox, { ...shared, value: typeof value === "object" ? JSON.stringify(value) : String(value ?? ""), long: field.kind === "long", fields, onChange });
  return div({ class: field.kind === "long" || field.kind === "json" ? "field wide with-picker" : "field with-picker" }, label({ for: id }, name), control, wrong);
}

/** @param {{ id: string, conditions: Item[], root: string, fields: import("./flow_fields.js").EventField[], onChange: (conditions: Item[]) => void }} properties */
function Conditions({ id, conditions, root, fields, onChange }) {
  /** @param {number} at @param {Item} changes */
  const set = (at, changes) => onChange(conditions.map((one, place) => (place === at ? changedCondition(one, changes, fields) : one)));
  return div({ class: "conditions" }, conditions.map((one, at) => div({ key: at, class: "condition" },
    h(FieldBox, { id: `${id}-field-${at}`, label: t("flow.field"), value: one.field, root, fields, onChange: (field) => set(at, { field }) }),
    h(ChoiceBox, { id: `${id}-op-${at}`, label: t("flow.operator"), value: one.op, onChange: (op) => set(at, { op }), options: OPERATORS.map((op) => /** @type {[string, string]} */ ([op, word([`operator.${op}`], op)])) }),
    h(ValueBox, { id: `${id}-value-${at}`, condition: one, root, fields, onChange: (value) => onChange(conditions.map((other) => (other === one ? { ...one, value } : other))) }),
    h(Button, { small: true, quiet: true, icon: "close", label: t("delete"), onClick: () => onChange(conditions.filter((_, place) => place !== at)) }))),
    button({ type: "button", class: "link", onClick: () => onChange([...conditions, { field: root, op: "eq", value: "" }]) }, t("flow.add_condition")));
}

/** @param {{ id?: string, label: string, value: unknown, onChange: (value: any) => void }} properties */
function JsonBox({ id, label: name, value, onChange }) {
  const typed = useSignal(/** @type {string | null} */ (null));
  const text = typed.value ?? JSON.stringify(value, null, 2);
  let wrong = false;
  try { JSON.parse(text); } catch { wrong = true; }
  return textarea({ id, class: "json", "aria-label": name, rows: Math.min(24, text.split("\n").length + 1), spellcheck: false, value: text, "aria-invalid": wrong || undefined, onInput: (event) => { typed.value = event.currentTarget.value; try { onChange(JSON.parse(event.currentTarget.value)); } catch {} }, onBlur: () => { if (!wrong) typed.value = null; } });
}

/** What is edited of a flow.
 * @param {Item | null} item @returns {Item} */
function beginning(item) {
  const definition = item?.meta?.definition ?? {};
  return { name: item?.name ?? "", description: item?.description ?? "", trigger_type: item?.trigger_type ?? "event", trigger_key: item?.trigger_key ?? "", conditions: definition.conditions ?? [], steps: definition.steps ?? [] };
}

/** @param {Item} flow @returns {Item} */
const withKeys = (flow) => ({ ...flow, steps: (flow.steps ?? []).map((/** @type {Item} */ step) => ({ ...step, key: newKey() })) });
/** @param {Item} flow @returns {Item} */
const plain = (flow) => ({ ...flow, steps: flow.steps.map((/** @type {Item} */ step) => Object.fromEntries(Object.entries(step).filter(([name, value]) => name !== "key" && value !== "" && value !== undefined))) });
