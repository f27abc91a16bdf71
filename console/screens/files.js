// Files: the list with dropping and uploading, and a page with a preview.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { useLoad } from "../api.js";
import { removeItem } from "../detail.js";
import { uploadAll } from "../filebox.js";
import { Missing } from "../missing.js";
import { moment, size } from "../format.js";
import { a, div, h, img, input, span } from "../html.js";
import { ListPage } from "../list.js";
import { PdfSheet } from "../paper.js";
import { Button, Card, Facts, Head, Menu, Skeleton, isTouched } from "../parts.js";
import { can, itemPath } from "../schema.js";
import { LinkName, fileType } from "../value.js";
import { t, tableName } from "../words.js";

/** @typedef {import("../schema.js").Table} Table */

/** @param {{ table: Table }} properties */
export function Files({ table }) {
  const over = useSignal(false);
  const left = useSignal(0);
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  /** @param {FileList | null | undefined} files */
  const upload = async (files) => {
    const all = [...(files ?? [])];
    left.value += all.length;
    await uploadAll(all, { next: () => { left.value--; } });
  };
  const edits = can(table, "create");
  return div({ class: over.value ? "dropping over" : "dropping", onDragOver: (event) => { if (!edits) return; event.preventDefault(); over.value = true; }, onDragLeave: () => { over.value = false; }, onDrop: (event) => { event.preventDefault(); over.value = false; void upload(event.dataTransfer?.files); } },
    edits ? div({ class: "page upload-line" }, span({ class: "soft" }, left.value ? t("file.n_left", { n: left.value }) : t(isTouched() ? "file.pick" : "file.drop")), h(Button, { primary: true, icon: "upload", busy: left.value > 0, onClick: () => box.current?.click() }, t("file.upload")), input({ ref: box, type: "file", multiple: true, class: "hidden", tabIndex: -1, "aria-label": t("file.upload"), onChange: (event) => { void upload(event.currentTarget.files); event.currentTarget.value = ""; } })) : null,
    h(ListPage, { table }));
}

/** @param {{ table: Table, id: string }} properties */
export function FilePage({ table, id }) {
  const loaded = useLoad(itemPath(table, id));
  if (loaded.error && !loaded.answer) return h(Missing, { table, error: loaded.error, retry: loaded.reload });
  if (!loaded.answer) return div({ class: "page" }, h(Skeleton, { rows: 10 }));
  const item = loaded.answer.data;
  const etag = loaded.answer.etag;
  const type = item.content_type ?? item.meta?.content_type ?? "";
  const content = `/console/v1/files/${id}/content`;
  return div({ class: "page" },
    h(Head, { title: item.name, over: a({ href: table.address }, tableName(table.key)) }, h(Button, { icon: "files", href: content, target: "_blank" }, t("file.open")), h(Button, { icon: "download", href: content, download: item.name }, t("file.download")),
      h(Menu, { label: t("more"), icon: "more", items: [{ label: t("delete"), icon: "trash", danger: true, hidden: !can(table, "delete"), run: () => removeItem(table, item, etag) }] })),
    div({ class: "columns" },
      div({ class: "column-main" }, type.startsWith("image/") ? h(Card, null, img({ class: "preview", src: content, alt: item.name })) : type === "application/pdf" ? h(PdfSheet, { src: content, title: item.name }) : h(Card, null, span({ class: "soft" }, t("file.no_preview")))),
      div({ class: "column-side" }, h(Card, { title: t("facts") }, h(Facts, { facts: [[t("field.client_id"), item.meta?.client_id ? h(LinkName, { table: "clients", id: item.meta.client_id }) : ""], [t("field.content_type"), fileType(type)], [t("field.size"), size(item.size ?? item.meta?.size ?? 0)], [t("field.created_at"), moment(item.created_at)]] })))));
}
