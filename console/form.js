// The generic form: a control for every field that can be sent. Create sends what was filled in, PATCH what was changed,
// with the version it was read with.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, formKey, get, post, useLoad } from "./api.js";
import { changedSince, dropDraft, keepDraft, readDraft, saveTyped } from "./drafts.js";
import { FieldRow } from "./field.js";
import { Others } from "./here.js";
import { useIdentity } from "./identity.js";
import { a, div, form, h, li, section, strong, ul } from "./html.js";
import { useKeys } from "./keys.js";
import { Missing } from "./missing.js";
import { change, make } from "./made.js";
import { showOnce } from "./once.js";
import { Button, Card, Head, Problem, Restored, Skeleton, savedHere } from "./parts.js";
import { tasteOf } from "./resources.js";
import { go, place } from "./router.js";
import { itemPath, may, titleOf, valueOf } from "./schema.js";
import { detailText, errorText, fieldName, t, tableName, word } from "./words.js";
import { ChangedNotice, openConflict } from "./conflict.js";

/** @typedef {import("./schema.js").Table} Table */
/** @typedef {import("./schema.js").Field} Field */
/** @typedef {import("./api.js").Item} Item */

/** @param {{ table: Table, id: string | null }} properties */
export function FormPage({ table, id }) {
  const path = id ? itemPath(table, id) : null;
  const loaded = useLoad(path, { typing: true });
  if (path && loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (path && !loaded.answer) return div({ class: "page narrow" }, h(Skeleton, { rows: 8 }));
  return h(Editing, { key: id ?? "new", table, item: loaded.answer?.data ?? null, etag: loaded.answer?.etag ?? "" });
}

/** @param {{ table: Table, item: Item | null, etag: string }} properties */
function Editing({ table, item, etag }) {
  // What was read first stays the base of the changes: a reload underneath never replaces what is being typed.
  const base = useRef({ item, etag });
  const known = useRef(new Set([etag]));
  const draftName = place.value.path;
  const start = useMemo(() => initial(table, item, place.value.query), []);
  const kept = useMemo(() => readDraft(draftName), []);
  const values = useSignal(/** @type {Item} */ (kept ? { ...start, ...kept.value } : start));
  const restored = useSignal(kept !== null);
  const error = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const key = useMemo(formKey, []);
  const touched = useRef(kept !== null);
  useEffect(() => {
    if (!item || touched.current || known.current.has(etag)) return;
    known.current.add(etag);
    base.current = { item, etag };
    values.value = initial(table, item, "");
  }, [etag]);

  // A link to a field opens the form there.
  useEffect(() => { if (place.value.hash) document.getElementById(place.value.hash)?.focus(); }, []);

  // A new client is in the country of the account, until somebody says otherwise.
  const home = useIdentity(!item && "country" in (tasteOf(table.key).starts ?? {}))?.country;
  useEffect(() => { if (home && !touched.current && !place.value.query.includes("country=")) values.value = { ...values.value, country: home }; }, [home]);
  const fields = table.fields.filter((field) => (item ? field.patch : field.create) && editable(field));
  const custom = useCustomFields(table);
  const errors = error.value instanceof ApiError ? errorsByField(error.value) : {};
  /** @param {string} name @param {unknown} value */
  const set = (name, value) => {
    values.value = { ...values.value, [name]: value };
    touched.current = true;
    keepDraft(draftName, () => changedSince(initial(table, base.current.item, ""), values.value));
  };
  /** @param {string} id */
  const goOnFrom = async (id) => {
    const saved = await get(itemPath(table, id));
    base.current = { item: saved.data, etag: saved.etag };
    known.current.add(saved.etag);
  };
  const bodyOf = () => {
    const body = item ? changes(fields, base.current.item ?? {}, values.value) : filledIn(fields, values.value);
    const own = customChanges(custom, base.current.item?.custom_fields ?? {}, values.value);
    return Object.keys(own).length > 0 ? { ...body, custom_fields: own } : body;
  };
  const back = item ? `${table.address}/${item.id}` : table.address;
  const save = async () => {
    if (busy.value) return;
    let body = bodyOf();
    if (item && Object.keys(body).length === 0) { dropDraft(draftName); return go(back); }
    busy.value = true;
    error.value = null;
    const here = savedHere();
    try {
      const answer = await saveTyped({ draft: draftName, typed: () => values.value, left: here.left,
        send: () => { body = bodyOf(); return item ? change(table, item.id, body, base.current.etag, draftName) : make(table, body, key, draftName); },
        next: () => item && goOnFrom(item.id) });
      if (!item && table.key === "pipelines") await addPhases(answer.data.id);
      showOnce(answer);
      const id = answer.data?.id ?? item?.id;
      // Whoever made a key has seen all there is to see.
      here.open(id && "get" in table.verbs && table.key !== "keys" ? `${table.address}/${id}` : back, answer);
    } catch (problem) {
      if (item && problem instanceof ApiError && problem.status === 412) {
        const theirs = await get(itemPath(table, item.id));
        openConflict({ table, mine: body, base: base.current.item ?? {}, theirs, done: (merged, newer) => {
          base.current = { item: newer.data, etag: newer.etag };
          known.current.add(newer.etag);
          // What only they changed is theirs; what I changed is in `merged`.
          values.value = { ...initial(table, newer.data, ""), ...merged };
          // After this attempt, which is still busy.
          setTimeout(() => void save());
        } });
      } else if (!here.missed(problem)) {
        error.value = problem;
        requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector("[aria-invalid=true], .error-list a"))?.focus());
      }
    } finally {
      busy.value = false;
    }
  };
  useKeys([{ key: "Ctrl+s", label: t("save"), run: () => void save(), always: true }]);
  const title = item ? titleOf(table, item) || tableName(table.key, 1) : word([`new.${table.key}`], t("new_one", { one: tableName(table.key, 1).toLowerCase() }));
  return form({ class: table.key === "corporate_identities" ? "page narrow with-aside" : "page narrow", noValidate: true, onSubmit: (event) => { event.preventDefault(); void save(); } },
    h(Head, { title, over: a({ href: table.address }, tableName(table.key)), beside: item ? h(Others, { address: `${table.address}/${item.id}` }) : null }),
    restored.value && kept ? h(Restored, { draft: draftName, discard: () => { values.value = start; touched.current = false; restored.value = false; dropDraft(draftName); } }) : null,
    item && touched.current && !known.current.has(etag) && !busy.value ? h(ChangedNotice, { table, item }) : null,
    error.value ? h(ErrorList, { table, error: error.value, fields }) : null,
    groupsOf(table, fields).map(([name, group]) => h(Card, { key: name, title: name ? word([`group.${name}`], name) : undefined },
      div({ class: "fields" }, group.map((field) => h(FieldRow, { key: field.name, table: table.key, field, value: values.value[field.name], error: errors[field.name], onNew: field.refers === "clients" ? (typed) => void import("./screens/quick_client.js").then(({ openQuickClient }) => openQuickClient(typed, (made) => set(field.name, made.id))) : undefined, onChange: (value) => set(field.name, value) }))))),
    custom.length > 0 ? h(Card, { title: tableName("custom_fields") }, div({ class: "fields" }, custom.map((field) => h(FieldRow, { key: field.name, table: "custom", field, name: field.label, value: values.value[field.name] ?? base.current.item?.custom_fields?.[field.key] ?? (field.kind === "boolean" ? false : ""), error: errors[`custom_fields.${field.key}`], onChange: (value) => set(field.name, value) })))) : null,
    table.key === "corporate_identities" ? h(Preview, { values: values.value }) : null,
    div({ class: "form-foot" }, h(Button, { href: back, onClick: () => dropDraft(draftName) }, t("cancel")), h(Button, { type: "submit", primary: true, busy: busy.value }, t("save"))));
}

/** A pipeline begins with the phases that a new account has; everybody reads these in their own language.
 * @param {string} pipeline */
async function addPhases(pipeline) {
  for (const [place, name] of PHASES.entries()) await post("/v1/phases", { pipeline_id: pipeline, name, order: place + 1 });
}

const PHASES = ["New", "Contact", "Proposal", "Negotiation", "Closing"];

/** The account's own fields of this kind of record.
 * @param {Table} table @returns {(Field & { key: string, label: string })[]} */
export function useCustomFields(table) {
  const has = table.fields.some((field) => field.kind === "custom");
  const all = /** @type {Item[]} */ (useLoad(has && may("settings.read") ? "/v1/custom-fields" : null).answer?.data ?? []);
  const kinds = /** @type {Record<string, string>} */ ({ checkbox: "boolean", select: "choice" });
  return all.filter((one) => one.entity === table.one).map((one) => ({ name: `custom ${one.key}`, key: one.key, label: one.label, kind: kinds[one.type] ?? "text", choices: one.options ?? [], length: 255 }));
}

/** @param {{ name: string, key: string }[]} custom @param {Item} before @param {Item} values */
function customChanges(custom, before, values) {
  const changed = custom.filter((field) => values[field.name] !== undefined && values[field.name] !== (before[field.key] ?? ""));
  return Object.fromEntries(changed.map((field) => [field.key, values[field.name] === "" ? null : values[field.name]]));
}

/** @param {{ values: Item }} properties */
function Preview({ values }) {
  const [shown, setShown] = useState(/** @type {typeof import("./screens/identity.js") | null} */ (null));
  useEffect(() => { void import("./screens/identity.js").then(setShown); }, []);
  return shown ? h(shown.IdentityPreview, { values }) : null;
}

/** Errors that belong to no visible field, with links to those that do.
 * @param {{ table: Table, error: unknown, fields: Field[], find?: (path: string) => { id: string, name: string } | undefined }} properties `find`: the control of a path that is no field. */
export function ErrorList({ table, error, fields, find }) {
  const details = error instanceof ApiError ? error.details : [];
  if (details.length === 0) return h(Problem, { error });
  return section({ class: "problem error-list", role: "alert" }, div(null, strong(null, errorText(/** @type {ApiError} */ (error))),
    ul(null, details.map((detail) => {
      const name = root(detail.field);
      const found = find?.(detail.field);
      const id = found?.id ?? (fields.some((field) => field.name === name) ? `f-${name}` : "");
      const text = `${found?.name ?? fieldName(table.key, name)}: ${detailText(detail)}`;
      return li({ key: detail.field }, id ? a({ href: `#${id}`, onClick: (event) => { event.preventDefault(); document.getElementById(id)?.focus(); } }, text) : text);
    }))));
}

/** @param {ApiError} error @returns {Record<string, string>} */
export const errorsByField = (error) => Object.fromEntries(error.details.map((detail) => [root(detail.field), detailText(detail)]));

/** @param {string} path */
const root = (path) => path.split(/[.[]/)[0] ?? path;

/** @param {Field} field */
export const editable = (field) => !["rows", "lines", "custom", "data"].includes(field.kind) && !["client_external_id", "generate", "external_id"].includes(field.name);

/** @param {Table} table @param {Item | null} item @param {string} query */
function initial(table, item, query) {
  const given = new URLSearchParams(query);
  return Object.fromEntries(table.fields.map((field) => [field.name,
    item ? (valueOf(item, field.name) ?? "") : (given.get(field.name) ?? tasteOf(table.key).starts?.[field.name] ?? (field.kind === "boolean" ? field.default ?? false : field.default ?? ""))]));
}

/** @param {Field[]} fields @param {Item} values */
function filledIn(fields, values) {
  return Object.fromEntries(fields.filter((field) => values[field.name] !== "" && values[field.name] !== undefined && values[field.name] !== null).map((field) => [field.name, sendable(field, values[field.name])]));
}

/** @param {Field[]} fields @param {Item} before @param {Item} values */
export function changes(fields, before, values) {
  const changed = fields.filter((field) => JSON.stringify(String(valueOf(before, field.name) ?? "")) !== JSON.stringify(String(values[field.name] ?? "")));
  return Object.fromEntries(changed.map((field) => [field.name, values[field.name] === "" ? null : sendable(field, values[field.name])]));
}

/** Whole numbers are sent as numbers, decimals as texts.
 * @param {Field} field @param {any} value */
const sendable = (field, value) => (field.kind === "integer" && /^-?\d{1,15}$/.test(String(value)) ? Number(value) : value);

/** @param {Table} table @param {Field[]} fields @returns {[string, Field[]][]} */
export function groupsOf(table, fields) {
  const groups = tasteOf(table.key).groups;
  if (!groups) return [["", fields]];
  const named = groups.map(([name, names]) => /** @type {[string, Field[]]} */ ([name, names.map((one) => fields.find((field) => field.name === one)).filter(Boolean)]));
  const rest = fields.filter((field) => !groups.some(([, names]) => names.includes(field.name)));
  return [...named, /** @type {[string, Field[]]} */ (["other", rest])].filter(([, group]) => group.length > 0);
}
