// Files: a control that uploads one, and the upload itself.
import { useRef, useState } from "preact/hooks";
import { remove, uploadFile, useLoad } from "./api.js";
import { div, h, img, input, label, p, span } from "./html.js";
import { Button, Icon, say, sayError, sentenceOf } from "./parts.js";
import { t } from "./words.js";

/** A control for a link to a file: chosen from the computer, shown if it is a picture.
 * @param {import("./field.js").Control & { picture?: boolean }} properties `picture`: whether it must be one. */
export function FileBox({ id, value, onChange, invalid, describedBy, disabled, picture }) {
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState(false);
  // What was uploaded here and is not saved yet; another choice replaces it.
  const unsaved = useRef("");
  /** @param {string} id */
  const choose = (id) => {
    if (unsaved.current) remove(`/v1/files/${unsaved.current}`).catch(() => {});
    unsaved.current = id;
    onChange(id);
  };
  const file = useLoad(value ? `/v1/files/${value}` : null).answer?.data;
  /** @param {File | undefined} chosen */
  const upload = async (chosen) => {
    if (!chosen) return;
    const refused = picture && !(await isPicture(chosen));
    setWrong(Boolean(refused));
    if (refused) return;
    setBusy(true);
    try {
      const answer = await uploadFile(chosen);
      choose(answer.data.id);
    } catch (error) { sayError(error); } finally { setBusy(false); }
  };
  const type = file?.content_type ?? file?.meta?.content_type ?? "";
  return div({ class: "file-box" },
    value && type.startsWith("image/") ? img({ src: `/console/v1/files/${value}/content`, alt: file?.name ?? "" }) : value ? span(null, h(Icon, { name: "files" }), file?.name) : null,
    label({ class: "button" }, h(Icon, { name: "upload" }), span(null, busy ? t("file.busy") : value ? t("file.replace") : t("file.choose")), input({ id, type: "file", class: "hidden", accept: picture ? PICTURES.join(",") : undefined, "aria-invalid": invalid || wrong || undefined, "aria-describedby": describedBy, disabled: disabled || busy, onChange: (event) => { void upload(event.currentTarget.files?.[0]); event.currentTarget.value = ""; } })),
    value ? h(Button, { quiet: true, icon: "close", label: t("clear"), onClick: () => choose("") }) : null,
    wrong ? p({ class: "wrong", role: "alert" }, t("file.no_picture")) : null);
}

/** Uploads files one after the other, and says once how it went.
 * @param {File[]} files @param {{ next: () => void, then?: (id: string) => Promise<unknown> }} each `next`: one is done. `then`: what follows an upload. */
export async function uploadAll(files, { next, then }) {
  /** @type {string[]} */
  const done = [];
  /** @type {string[]} */
  const failed = [];
  for (const file of files) {
    try {
      const made = await uploadFile(file);
      await then?.(made.data.id);
      done.push(file.name);
    } catch (error) {
      const why = sentenceOf(error);
      failed.push(why.includes(file.name) ? why : `${file.name}: ${why}`);
    }
    next();
  }
  const uploaded = done.length === 1 ? t("file.uploaded", { name: done[0] ?? "" }) : t("file.n_uploaded", { n: done.length });
  if (failed.length === 0 && done.length > 0) say(uploaded);
  else if (failed.length === 1) say(failed[0] ?? "", { error: true, detail: done.length > 0 ? uploaded : undefined });
  else if (failed.length > 1) say(t("file.n_failed", { n: failed.length }), { error: true, detail: [...failed, ...(done.length > 0 ? [uploaded] : [])].join("\n") });
}

/** What the server prints on documents. */
const PICTURES = ["image/png", "image/jpeg"];

/** Whether a file is a picture that can be shown, whatever its name says.
 * @param {File} file */
async function isPicture(file) {
  if (!PICTURES.includes(file.type)) return false;
  const address = URL.createObjectURL(file);
  try {
    await Object.assign(new Image(), { src: address }).decode();
    return true;
  } catch {
    return false;
  } finally { URL.revokeObjectURL(address); }
}
