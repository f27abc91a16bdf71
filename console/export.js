// Exports: the records of a list as a table, made while it is downloaded.
import { useMemo, useState } from "preact/hooks";
import { formKey, post } from "./api.js";
import { Dialog, openDialog } from "./dialog.js";
import { ChoiceBox } from "./field.js";
import { div, fieldset, h, input, label, legend, p, span } from "./html.js";
import { can, tables } from "./schema.js";
import { choiceName, t, tableName } from "./words.js";

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
    download(data.id);
  };
  return h(Dialog, { title: resource ? t("export.title", { many: tableName(resource).toLowerCase() }) : t("export.new"), action: t("export.download"), close, run },
    resource ? p(null, some ? t("export.some", { n: some }) : Object.keys(filters).length > 0 ? t("export.filtered") : t("export.all"))
      : div({ class: "field" }, label({ for: "export-resource" }, t("field.exports.resource")), h(ChoiceBox, { id: "export-resource", value: chosen, options: known, onChange: setChosen })),
    fieldset({ class: "field choice" }, legend(null, t("field.exports.format")), div({ class: "radios" }, FORMATS.map((one) => label({ key: one },
      input({ type: "radio", name: "export-format", checked: format === one, onChange: () => setFormat(one) }), span(null, choiceName("exports", "format", one)))))));
}

/** @param {string} id */
function download(id) {
  const link = document.createElement("a");
  link.href = fileOf(id);
  link.download = "";
  link.click();
}

/** @param {string} id */
export const fileOf = (id) => `/console/v1/exports/${id}/file`;
