// Exports that were made: each can be downloaded again, with the records of that moment.
import { useEffect } from "preact/hooks";
import { useLoad } from "../api.js";
import { removeItem } from "../detail.js";
import { fileOf, openExport } from "../export.js";
import { a, div, h, span, strong, table as tableElement, tbody, td, th, thead, tr } from "../html.js";
import { Button, Empty, Head, Menu, Moment, Problem, Skeleton } from "../parts.js";
import { can } from "../schema.js";
import { choiceName, fieldName, t, tableName } from "../words.js";

/** @typedef {import("../api.js").Item} Item */

/** @param {{ table: import("../schema.js").Table, adding: boolean }} properties */
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
        td({ class: "menu-column" }, div({ class: "line-end" }, h(Button, { small: true, icon: "download", href: fileOf(row.id), download: "", name: `${t("file.download")}: ${tableName(row.resource)}` }, t("file.download")),
          can(table, "delete") ? h(Menu, { label: t("more"), name: `${t("more")}: ${tableName(row.resource)}`, icon: "more", quiet: true, items: [{ label: t("delete"), icon: "trash", danger: true, run: () => removeItem(table, row, "") }] }) : null))))))) : null);
}
