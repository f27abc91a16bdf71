// Exports: the records of a list as a table, made while it is downloaded; and those that were made before.
import { useEffect, useMemo, useState } from "preact/hooks";
import { formKey, post, useLoad } from "./api.js";
import { removeItem } from "./detail.js";
import { Dialog, openDialog } from "./dialog.js";
import { ChoiceBox } from "./field.js";
import { a, div, fieldset, h, input, label, legend, p, span, strong, table as tableElement, tbody, td, th, thead, tr } from "./html.js";
import { Button, Empty, Head, Menu, Moment, Problem, Skeleton } from "./parts.js";
import { can, tables } from "./schema.js";
import { choiceName, fieldName, t, tableName } from "./words.js";

/** @typedef {import("./api.js").Item} Item */

const FORMATS = ["xlsx", "csv", "jsonl"];

/** @param {string} resource Empty: it is chosen. @param {Record<string, string>} filters */
export const openExport = (resource, filters) => openDialog(({ close }) => h(NewExport, { resource, filters, close }));

/** @param {{ resource: string, filters: Record<string, string>, close: () => void }} properties */
function NewExport({ resource, filters, close }) {
  const known = Object.values(tables).filter((table) => !table.parent && can(table, "list")).map((table) => /** @type {[string, string]} */ ([table.key, tableName(table.key)])).sort(([, one], [, other]) => one.localeCompare(other));
  const [chosen, setChosen] = useState(resource || "clients");
  const [format, setFormat] = useState("xlsx");
  const key = useMemo(formKey, []);
  const some = filters.id ? filters.id.split(",").length : 0;
  const run = async () => {
    const { data } = await post("/v1/exports", { resource: chosen, format, filters }, { key });
    download(data.id, chosen);
  };
  return h(Dialog, { title: resource ? t("export.title", { many: tableName(resource), low: tableName(resource).toLowerCase() }) : t("export.new"), action: t("export.download"), close, run },
    resource ? p(null, some ? t("export.some", { n: some }) : Object.keys(filters).length > 0 ? t("export.filtered") : t("export.all"))
      : div({ class: "field" }, label({ for: "export-resource" }, t("field.exports.resource")), h(ChoiceBox, { id: "export-resource", value: chosen, options: known, onChange: setChosen })),
    fieldset({ class: "field choice" }, legend(null, t("field.exports.format")), div({ class: "radios" }, FORMATS.map((one) => label({ key: one },
      input({ type: "radio", name: "export-format", checked: format === one, onChange: () => setFormat(one) }), span(null, choiceName("exports", "format", one)))))));
}

/** @param {string} id @param {string} resource */
function download(id, resource) {
  const link = document.createElement("a");
  link.href = fileOf(id, resource);
  link.download = "";
  link.click();
}

/** The file has a name in the reader's language.
 * @param {string} id @param {string} resource */
const fileOf = (id, resource) => `/console/v1/exports/${id}/file?name=${encodeURIComponent(tableName(resource))}`;

/** Exports that were made: each can be downloaded again, with the records of that moment.
 * @param {{ table: import("./schema.js").Table, adding: boolean }} properties */
export function Exports({ table, adding }) {
  const loaded = useLoad(`${table.path}?per_page=50`);
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  useEffect(() => { if (adding) openExport("", {}); }, [adding]);
  const add = can(table, "create") ? h(Button, { primary: true, icon: "plus", onClick: () => openExport("", {}) }, t("export.new")) : null;
  return div({ class: "page" },
    h(Head, { title: tableName("exports"), over: a({ href: "/settings" }, t("menu.settings")) }, rows.length > 0 ? add : null),
    loaded.error && !loaded.answer ? h(Problem, { error: loaded.error, retry: loaded.reload }) : null,
    !loaded.answer && !loaded.error ? div({ class: "card" }, h(Skeleton, { rows: 4 })) : null,
    loaded.answer && rows.length === 0 ? div({ class: "card" }, h(Empty, { icon: "download", title: t("list.empty", { many: tableName("exports").toLowerCase() }), text: t("export.about") }, add)) : null,
    rows.length > 0 ? div({ class: "card list" }, tableElement({ class: "table plain-rows", "aria-label": tableName("exports") },
      thead(null, tr(null, th({ scope: "col" }, fieldName("exports", "resource")), th({ scope: "col" }, fieldName("exports", "format")), th({ scope: "col", class: "when moment" }, t("field.created_at")), th({ scope: "col" }, span({ class: "hidden" }, t("file.download"))))),
      tbody(null, rows.map((row) => tr({ key: row.id },
        td({ class: "card-title" }, strong(null, tableName(row.resource)), Object.keys(row.filters ?? {}).length > 0 ? span({ class: "soft" }, ` · ${t(row.filters.id ? "export.of_selection" : "export.of_filters")}`) : null),
        td({ class: "card-line-2" }, choiceName("exports", "format", row.format)), td({ class: "when card-none" }, h(Moment, { at: row.meta?.created_at })),
        td({ class: "menu-column" }, div({ class: "line-end" }, h(Button, { small: true, icon: "download", href: fileOf(row.id, row.resource), download: "", name: `${t("file.download")}: ${tableName(row.resource)}` }, t("file.download")),
          can(table, "delete") ? h(Menu, { label: t("more"), name: `${t("more")}: ${tableName(row.resource)}`, icon: "more", quiet: true, items: [{ label: t("delete"), icon: "trash", danger: true, run: () => removeItem(table, row, "") }] }) : null))))))) : null);
}
