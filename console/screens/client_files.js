// The files of a client: uploaded here, and opened on their own page.
import { useRef, useState } from "preact/hooks";
import { patch, useLoad } from "../api.js";
import { uploadAll } from "../filebox.js";
import { size } from "../format.js";
import { a, div, h, input, li, span, ul } from "../html.js";
import { Button, Card, Empty, Moment, Problem, Skeleton, isTouched } from "../parts.js";
import { can, tables } from "../schema.js";
import { fileType } from "../value.js";
import { t, tableName } from "../words.js";

/** @typedef {import("../api.js").Item} Item */

/** @param {{ id: string }} properties */
export function ClientFiles({ id }) {
  const table = tables.files;
  const loaded = useLoad(table && can(table, "list") ? `/v1/files?client_id=${id}&per_page=100` : null);
  const [left, setLeft] = useState(0);
  const [over, setOver] = useState(false);
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  if (!table) return null;
  const edits = can(table, "create") && can(table, "patch");
  /** @param {FileList | null | undefined} files */
  const upload = async (files) => {
    const all = [...(files ?? [])];
    setLeft((before) => before + all.length);
    await uploadAll(all, { next: () => setLeft((before) => before - 1), then: (file) => patch(`/v1/files/${file}`, { client_id: id }) });
  };
  const rows = /** @type {Item[]} */ (loaded.answer?.data ?? []);
  const button = edits ? h(Button, { small: rows.length > 0, primary: rows.length === 0, icon: "upload", busy: left > 0, onClick: () => box.current?.click() }, left ? t("file.n_left", { n: left }) : t("file.upload")) : null;
  return div({ class: over ? "dropping over" : "dropping", onDragOver: (event) => { if (!edits) return; event.preventDefault(); setOver(true); }, onDragLeave: () => setOver(false), onDrop: (event) => { event.preventDefault(); setOver(false); if (edits) void upload(event.dataTransfer?.files); } },
    edits ? input({ ref: box, type: "file", multiple: true, class: "hidden", tabIndex: -1, "aria-label": t("file.upload"), onChange: (event) => { void upload(event.currentTarget.files); event.currentTarget.value = ""; } }) : null,
    h(Card, { title: [tableName("files"), rows.length ? span({ key: "count", class: "count" }, ` ${rows.length}`) : null], actions: rows.length ? button : null },
      loaded.error && !loaded.answer ? h(Problem, { error: loaded.error, retry: loaded.reload }) : !loaded.answer ? h(Skeleton, { rows: 3 })
        : rows.length === 0 ? h(Empty, { icon: "files", title: t("client.no_files"), text: edits ? t(isTouched() ? "client.no_files_touch" : "client.no_files_text") : undefined }, button)
        : ul({ class: "related" }, rows.map((row) => li({ key: row.id }, a({ href: `${table.address}/${row.id}` }, div({ class: "related-line" },
          span({ class: "related-name" }, row.name), span({ class: "soft related-sub" }, [fileType(row.meta?.content_type ?? ""), size(row.meta?.size ?? 0)].filter(Boolean).join(" · ")), span({ class: "related-end soft" }, h(Moment, { at: row.created_at })))))))));
}
