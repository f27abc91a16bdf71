// Imports: a file is chosen, checked and shown as it was understood; it runs when somebody says so, and can be undone.
import { useEffect, useMemo, useState } from "preact/hooks";
import { formKey, patch, post, uploadFile, useLoad } from "../api.js";
import { Missing } from "../missing.js";
import { confirm } from "../dialog.js";
import { ChoiceBox } from "../field.js";
import { count, decimal, size } from "../format.js";
import { a, div, fieldset, form, h, input, label, legend, li, p, span, strong, table as tableElement, tbody, td, th, thead, tr, ul } from "../html.js";
import { Button, Card, Empty, Head, Icon, Menu, Moment, Pill, Problem, Skeleton, deleteLater, isTouched, savedHere, say, sayError } from "../parts.js";
import { go } from "../router.js";
import { can, itemPath, tables } from "../schema.js";
import { LinkName } from "../value.js";
import { choiceName, fieldName, language, said, t, tableName, word } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */
/** @typedef {import("../api.js").Item} Item */

/** What most people bring, in the order in which it is imported. */
const RESOURCES = ["clients", "suppliers", "products", "invoices", "quotes", "subscriptions", "projects", "deals", "tickets", "tasks", "notes"];
/** The names of the programs, which are the same in every language. @type {[string, string][]} */
const SOURCES = [["moneybird", "Moneybird"], ["e_boekhouden", "e-Boekhouden.nl"], ["teamleader", "Teamleader"], ["invoice_ninja", "Invoice Ninja"], ["stripe", "Stripe"]];
const READ = ["encoding", "separator", "decimal_sign", "date_order"];
const KEYS = ["email", "external_id", "number", "code"];
/** Fields of the client of a document, by which it is found or made. */
const OF_CLIENT = ["client.company_name", "client.email", "client.external_id"];
const REFRESH = 700;

/** @param {{ table: Table }} properties */
export function Imports({ table }) {
  const loaded = useLoad(`${table.path}?per_page=50`);
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const add = can(table, "create") ? h(Button, { primary: true, icon: "plus", href: `${table.address}/new` }, t("import.new")) : null;
  return div({ class: "page" },
    h(Head, { title: tableName("imports"), over: a({ href: "/settings" }, t("menu.settings")) }, rows.length > 0 ? add : null),
    loaded.error && !loaded.answer ? h(Problem, { error: loaded.error, retry: loaded.reload }) : null,
    !loaded.answer && !loaded.error ? div({ class: "card" }, h(Skeleton, { rows: 4 })) : null,
    loaded.answer && rows.length === 0 ? div({ class: "card" }, h(Empty, { icon: "download", title: t("import.empty"), text: t("import.empty_text") }, add)) : null,
    rows.length > 0 ? div({ class: "card list" }, tableElement({ class: "table plain-rows", "aria-label": tableName("imports") },
      thead(null, tr(null, th({ scope: "col" }, fieldName("imports", "resource")), th({ scope: "col" }, fieldName("imports", "file_id")), th({ scope: "col", class: "status" }, t("field.status")), th({ scope: "col", class: "number" }, fieldName("imports", "lines")), th({ scope: "col", class: "number" }, fieldName("imports", "created")), th({ scope: "col", class: "when moment" }, t("field.created_at")))),
      tbody(null, rows.map((row) => tr({ key: row.id },
        td({ class: "card-title first" }, a({ href: `${table.address}/${row.id}` }, tableName(row.resource))), td({ class: "card-line-2" }, h(LinkName, { table: "files", id: row.file_id, plain: true })),
        td({ class: "card-status" }, h(Pill, { table: "imports", field: "status", value: row.status })), td({ class: "number card-none" }, count(row.lines)), td({ class: "number card-none" }, count(row.created)), td({ class: "when card-none" }, h(Moment, { at: row.meta?.created_at }))))))) : null);
}

/** Chooses what, from which program, and the file.
 * @param {{ table: Table }} properties */
export function NewImport({ table }) {
  const known = RESOURCES.filter((key) => { const one = tables[key]; return one !== undefined && can(one, "create"); });
  const wanted = new URLSearchParams(location.search).get("resource") ?? "";
  const [resource, setResource] = useState(known.includes(wanted) ? wanted : known[0] ?? "");
  const [source, setSource] = useState("");
  const [file, setFile] = useState(/** @type {File | null} */ (null));
  const [pdfs, setPdfs] = useState(/** @type {File | null} */ (null));
  const [over, setOver] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const key = useMemo(formKey, [file, resource, source]);
  const check = async () => {
    if (!file || busy) return;
    setBusy(true);
    setError(null);
    const here = savedHere();
    try {
      const lines = await uploadFile(file);
      const zip = pdfs && resource === "invoices" ? await uploadFile(pdfs) : null;
      const made = await post(table.path, { resource, file_id: lines.data.id, ...(source ? { source } : {}), ...(zip ? { pdfs_file_id: zip.data.id } : {}) }, { key });
      here.open(`${table.address}/${made.data.id}`, made, { quiet: true });
    } catch (problem) { if (!here.missed(problem)) setError(problem); } finally { setBusy(false); }
  };
  return form({ class: "page narrow", noValidate: true, onSubmit: (event) => { event.preventDefault(); void check(); } },
    h(Head, { title: t("import.new"), over: a({ href: table.address }, tableName("imports")) }),
    p({ class: "soft settings-about" }, t("import.how")),
    error ? h(Problem, { error }) : null,
    h(Card, null, div({ class: "fields" },
      div({ class: "field" }, label({ for: "import-resource" }, t("import.what")), h(ChoiceBox, { id: "import-resource", value: resource, onChange: setResource, options: known.map((one) => /** @type {[string, string]} */ ([one, tableName(one)])) }), resource === "invoices" ? p({ class: "help" }, t("import.clients_first")) : null),
      div({ class: "field" }, label({ for: "import-source" }, t("import.program")), h(ChoiceBox, { id: "import-source", value: source, onChange: setSource, options: [["", t("import.other_program")], ...SOURCES] }))),
      div({ class: over ? "drop-file over" : "drop-file", onDragOver: (event) => { event.preventDefault(); setOver(true); }, onDragLeave: () => setOver(false), onDrop: (event) => { event.preventDefault(); setOver(false); setFile(event.dataTransfer?.files[0] ?? file); } },
        h(Icon, { name: "files" }), file ? strong(null, `${file.name} · ${size(file.size)}`) : span({ class: "soft" }, t(isTouched() ? "import.pick" : "import.drop")),
        h(Chooser, { id: "import-file", name: t(file ? "file.replace" : "file.choose"), accept: ".csv,.txt,.tsv,.xlsx,.jsonl,.ndjson", onFile: setFile })),
      resource === "invoices" ? div({ class: "drop-file small" }, span({ class: "soft" }, pdfs ? `${pdfs.name} · ${size(pdfs.size)}` : t("import.pdfs")), h(Chooser, { id: "import-pdfs", name: t(pdfs ? "file.replace" : "import.choose_pdfs"), accept: ".zip", onFile: setPdfs })) : null),
    div({ class: "form-foot" }, h(Button, { href: table.address }, t("cancel")), h(Button, { type: "submit", primary: true, busy, disabled: !file }, t("import.check"))));
}

/** @param {{ id: string, name: string, accept: string, onFile: (file: File) => void }} properties */
const Chooser = ({ id, name, accept, onFile }) => label({ class: "button", for: id }, span(null, name), input({ id, type: "file", class: "hidden", accept, onChange: (event) => { const file = event.currentTarget.files?.[0]; if (file) onFile(file); } }));

/** @param {{ table: Table, id: string }} properties */
export function ImportPage({ table, id }) {
  const loaded = useLoad(itemPath(table, id));
  const status = loaded.answer?.data.status;
  const moving = status === "running" || status === "undoing";
  // Its progress has no events.
  useEffect(() => {
    if (!moving) return;
    const timer = setInterval(loaded.reload, REFRESH);
    return () => clearInterval(timer);
  }, [moving]);
  if (loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (!loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 10 }));
  const item = loaded.answer.data;
  const etag = loaded.answer.etag;
  const edits = can(table, "patch");
  /** @param {string} name @param {import("../words.js").Word} done @param {Item} [body] */
  const act = async (name, done, body) => { await post(`${itemPath(table, id)}/${name}`, body, { etag }); say(t(done)); };
  const before = (/** @type {Item[]} */ (item.warnings ?? [])).find((one) => one.code === "imported_before");
  const run = () => confirm({ title: t("import.run_title", { n: item.valid_lines, count: count(item.valid_lines) }), action: t("import.run"), run: () => act("run", "import.started", before ? { again: true } : undefined),
    text: [before ? `${problemText(before)} ` : "", t("import.run_text"), item.lines > item.valid_lines ? ` ${t("import.left_out", { n: item.lines - item.valid_lines, count: count(item.lines - item.valid_lines) })}` : ""] });
  const undo = () => confirm({ title: t("import.undo_title"), text: t("import.undo_text"), action: t("import.undo"), danger: true, run: () => act("undo", "import.undoing") });
  return div({ class: "page import" },
    h(Head, { title: `${tableName(item.resource)}`, over: a({ href: table.address }, tableName("imports")), beside: [h(Pill, { key: "status", table: "imports", field: "status", value: item.status }), span({ key: "file", class: "soft" }, h(LinkName, { table: "files", id: item.file_id, plain: true }))] },
      edits && item.status === "checked" ? h(Button, { primary: true, icon: "check", disabled: item.valid_lines === 0, onClick: run }, t("import.run_n", { n: item.valid_lines, count: count(item.valid_lines) })) : null,
      item.status === "done" && tables[item.resource] ? h(Button, { primary: true, href: tables[item.resource]?.address }, t("import.show", { many: tableName(item.resource).toLowerCase(), Many: tableName(item.resource) })) : null,
      edits && ["done", "failed"].includes(item.status) && item.created > 0 ? h(Button, { onClick: undo }, t("import.undo")) : null,
      h(Menu, { label: t("more"), icon: "more", items: [{ label: t("delete"), icon: "trash", danger: true, hidden: moving || !can(table, "delete"), run: () => { go(table.address); deleteLater(t("deleted", { name: tableName("imports", 1) }), id, itemPath(table, id), etag); } }] })),
    item.failure ? div({ class: "problem", role: "alert" }, h(Icon, { name: "alert" }), div(null, strong(null, t("import.stopped")), p(null, said(item.failure) || item.failure))) : null,
    moving ? h(Running, { item }) : null,
    item.status === "checked" ? h(Checked, { table, item, etag, edits }) : h(Result, { item }));
}

/** @param {{ item: Item }} properties */
function Running({ item }) {
  const done = item.status === "undoing" ? item.removed : item.processed;
  const all = item.status === "undoing" ? item.created : item.lines;
  const part = all > 0 ? Math.min(100, Math.round((done * 100) / all)) : 0;
  return h(Card, { class: "import-progress" }, div({ role: "status" }, t(item.status === "undoing" ? "import.undoing_n" : "import.running_n", { done: count(done), all: count(all) })),
    span({ class: "age-bar", role: "progressbar", "aria-valuenow": part, "aria-valuemin": 0, "aria-valuemax": 100, "aria-label": t("import.progress") }, span({ class: "blue", style: { width: `${part}%` } })));
}

/** @param {string} name @param {number} number @param {string} [tone] */
const tile = (name, number, tone = "") => div({ key: name, class: `tile ${tone}` }, span({ class: "soft" }, name), strong(null, count(number)));

/** What the check understood, which can be changed, and what it cannot import.
 * @param {{ table: Table, item: Item, etag: string, edits: boolean }} properties */
function Checked({ table, item, etag, edits }) {
  const [busy, setBusy] = useState(false);
  /** @param {Item} body */
  const change = async (body) => {
    setBusy(true);
    try { await patch(itemPath(table, item.id), body, { etag }); } catch (error) { sayError(error); } finally { setBusy(false); }
  };
  const target = tables[item.resource];
  const keys = KEYS.filter((name) => target?.fields.some((field) => field.name === name));
  const choices = /** @param {string} name */ (name) => (table.fields.find((field) => field.name === name)?.choices ?? []).map((choice) => /** @type {[string, string]} */ ([choice, choiceName("imports", name, choice)]));
  const sheet = item.format !== "csv";
  return [
    div({ key: "tiles", class: "tiles" }, tile(fieldName("imports", "lines"), item.lines), tile(fieldName("imports", "valid_lines"), item.valid_lines, item.valid_lines > 0 ? "good" : ""), tile(fieldName("imports", "problem_count"), item.problem_count, item.problem_count > 0 ? "bad" : "")),
    div({ key: "columns", class: "columns" },
      div({ class: "column-main" }, h(Problems, { rows: item.problems ?? [], total: item.problem_count, resource: item.resource }), h(Problems, { rows: item.warnings ?? [], total: item.warning_count, resource: item.resource, mild: true }), h(Columns, { item, busy, edits, change }), h(Preview, { item })),
      div({ class: "column-side" },
        h(Card, { title: t("import.recognized") }, div({ class: "fields one" }, READ.filter((name) => !sheet || !["encoding", "separator"].includes(name)).map((name) => div({ key: name, class: "field" }, label({ for: `import-${name}` }, fieldName("imports", name)),
          h(ChoiceBox, { id: `import-${name}`, value: item[name], disabled: busy || !edits, onChange: (value) => void change({ [name]: value }), options: choices(name) }))))),
        h(Card, { title: t("import.existing") }, div({ class: "fields one" },
          div({ class: "field" }, label({ for: "import-match" }, fieldName("imports", "match_by")), h(ChoiceBox, { id: "import-match", value: item.match_by, disabled: busy || !edits, onChange: (value) => void change({ match_by: value }), options: [["", t("import.no_match")], ...keys.map((name) => /** @type {[string, string]} */ ([name, fieldName(item.resource, name)]))] })),
          item.match_by ? fieldset({ class: "field choice" }, legend(null, t("import.if_exists")), div({ class: "radios column" }, ["skip", "update"].map((one) => label({ key: one }, input({ type: "radio", name: "import-existing", checked: item.existing === one, disabled: busy || !edits, onChange: () => void change({ existing: one }) }), span(null, choiceName("imports", "existing", one)))))) : p({ class: "help" }, t("import.no_match_text")))))),
  ];
}

/** @param {{ rows: Item[], total: number, resource: string, mild?: boolean }} properties */
function Problems({ rows, total, resource, mild }) {
  if (rows.length === 0) return null;
  return h(Card, { title: [fieldName("imports", mild ? "warnings" : "problems"), span({ key: "count", class: "count" }, ` ${count(total)}`)], class: "import-problems" },
    p({ class: "soft" }, t(mild ? "import.warnings_text" : "import.problems_text")),
    div({ class: "table-box" }, tableElement({ class: "table plain" }, thead(null, tr(null, th({ scope: "col", class: "number" }, t("import.line")), th({ scope: "col" }, t("import.column")), th({ scope: "col", class: "grow" }, t("import.problem")))),
      tbody(null, rows.map((row, place) => tr({ key: place }, td({ class: "number" }, span({ class: "phone-label soft" }, `${t("import.line")} `), row.line || ""), td(null, row.column || (row.field ? fieldName(resource, row.field) : "")), td({ class: "wraps" }, problemText(row))))))),
    total > rows.length ? p({ class: "soft" }, t("import.first_n", { n: rows.length })) : null);
}

/** @param {Item} row */
const problemText = (row) => said(row.message) || (row.code && language !== "en" ? word([`field_error.${row.code}.${row.field}`, `field_error.${row.code}`], row.message) : row.message);

/** Which field each column becomes.
 * @param {{ item: Item, busy: boolean, edits: boolean, change: (body: Item) => Promise<void> }} properties */
function Columns({ item, busy, edits, change }) {
  const target = tables[item.resource];
  const fields = [...(target?.fields ?? []).filter((field) => field.create && !["rows", "lines", "custom", "data"].includes(field.kind)).map((field) => field.name), ...(["invoices", "quotes", "workorders"].includes(item.resource) ? OF_CLIENT : [])];
  /** @param {string} name */
  const nameOf = (name) => (name.startsWith("client.") ? `${tableName("clients", 1)}: ${fieldName("clients", name.slice(7)).toLowerCase()}` : fieldName(item.resource, name));
  const options = fields.map((name) => /** @type {[string, string]} */ ([name, nameOf(name)])).sort((one, other) => one[1].localeCompare(other[1]));
  return h(Card, { title: fieldName("imports", "columns") }, p({ class: "soft" }, t("import.columns_text")),
    div({ class: "table-box" }, tableElement({ class: "table plain import-columns" }, thead(null, tr(null, th({ scope: "col" }, t("import.column")), th({ scope: "col" }, t("import.sample")), th({ scope: "col" }, t("import.becomes")))),
      tbody(null, (/** @type {Item[]} */ (item.columns ?? [])).map((one, place) => tr({ key: place, class: one.field ? "" : "faded" }, td(null, strong(null, one.column)), td({ class: "soft wraps" }, one.sample, one.field && one.read && one.read !== one.sample ? ` → ${one.read}` : "", one.note ? p({ class: "help" }, said(one.note) || one.note) : null),
        td(null, h(ChoiceBox, { id: `import-column-${place}`, label: `${one.column}: ${t("import.becomes")}`, value: one.field, disabled: busy || !edits,
          options: [["", t("import.ignored")], ...options, ...(one.field && !fields.includes(one.field) ? [/** @type {[string, string]} */ ([one.field, nameOf(one.field)])] : [])],
          onChange: (value) => void change({ mapping: { ...item.mapping, [one.column]: value } }) }))))))));
}

/** The first records as they will be made.
 * @param {{ item: Item }} properties */
function Preview({ item }) {
  const rows = /** @type {Item[]} */ (item.preview ?? []).slice(0, 3);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].slice(0, 6);
  if (names.length === 0) return null;
  return h(Card, { title: fieldName("imports", "preview") }, div({ class: "table-box scrolls" }, tableElement({ class: "table plain" }, thead(null, tr(null, names.map((name) => th({ key: name, scope: "col" }, fieldName(item.resource, name))))),
    tbody(null, rows.map((row, place) => tr({ key: place }, names.map((name) => td({ key: name }, shown(row[name])))))))));
}

/** @param {unknown} value */
const shown = (value) => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** Why a line failed, or stays after an undo: what the check said of it, in the reader's language, else the server's words.
 * @param {Item} item @param {Item} error */
function errorOf(item, error) {
  const known = (/** @type {Item[]} */ (item.problems ?? [])).find((problem) => problem.line === error.line);
  if (known && (item.status !== "undone" || error.message.endsWith(known.message))) return `${known.column || known.field}: ${problemText(known)}`;
  return said(error.message) || error.message.split("; ").map(ofColumn).join(" ");
}

/** What is wrong with a column: the server's sentence begins with its name.
 * @param {string} sentence */
function ofColumn(sentence) {
  const parts = sentence.split(" ");
  const at = parts.findIndex((_, place) => place > 0 && said(parts.slice(place).join(" ")));
  return at > 0 ? `${parts.slice(0, at).join(" ")}: ${said(parts.slice(at).join(" "))}` : sentence;
}

/** What an import did.
 * @param {{ item: Item }} properties */
function Result({ item }) {
  const names = ["created", "updated", "skipped", "failed", ...(item.removed > 0 ? ["removed"] : [])];
  const errors = /** @type {Item[]} */ (item.errors ?? []);
  const sums = Object.entries(/** @type {Record<string, Item>} */ (item.report ?? {})).filter(([, one]) => one && typeof one === "object");
  return [
    div({ key: "tiles", class: "tiles" }, names.map((name) => tile(fieldName("imports", name), item[name], name === "failed" && item.failed > 0 ? "bad" : ""))),
    sums.length > 0 ? h(Card, { key: "report", title: fieldName("imports", "report") }, p({ class: "soft" }, t("import.report_text")),
      div({ class: "table-box" }, tableElement({ class: "table plain" }, thead(null, tr(null, th({ scope: "col" }, t("import.sum")), ["source", "imported", "left_out", "difference"].map((name) => th({ key: name, scope: "col", class: "number" }, word([`import.${name}_sum`, `import.${name}`], name))))),
        tbody(null, sums.map(([name, one]) => tr({ key: name }, td(null, fieldName(item.resource, name)), ["source", "imported", "left_out", "difference"].map((part) => td({ key: part, class: part === "difference" && Number(one[part]) !== 0 ? "number late" : "number" }, decimal(one[part] ?? 0, 2))))))))) : null,
    errors.length > 0 ? h(Card, { key: "errors", title: [fieldName("imports", "errors"), span({ key: "count", class: "count" }, ` ${count(errors.length)}`)] }, ul({ class: "lines" }, errors.map((one, place) => li({ key: place }, div(null, one.line ? strong(null, `${t("import.line")} ${one.line} `) : null, errorOf(item, one)))))) : null,
  ];
}

