// Files: a control that uploads one, and the upload itself.
import { useState } from "preact/hooks";
import { uploadFile, useLoad } from "./api.js";
import { div, h, img, input, label, span } from "./html.js";
import { Button, Icon, sayError } from "./parts.js";
import { t } from "./words.js";

/** A control for a link to a file: chosen from the computer, shown if it is a picture.
 * @param {import("./field.js").Control} properties */
export function FileBox({ id, value, onChange, disabled }) {
  const [busy, setBusy] = useState(false);
  const file = useLoad(value ? `/v1/files/${value}` : null).answer?.data;
  /** @param {File | undefined} chosen */
  const upload = async (chosen) => {
    if (!chosen) return;
    setBusy(true);
    try {
      const answer = await uploadFile(chosen);
      onChange(answer.data.id);
    } catch (error) { sayError(error); } finally { setBusy(false); }
  };
  const type = file?.content_type ?? file?.meta?.content_type ?? "";
  return div({ class: "file-box" },
    value && type.startsWith("image/") ? img({ src: `/console/v1/files/${value}/content`, alt: file?.name ?? "" }) : value ? span(null, h(Icon, { name: "files" }), file?.name) : null,
    label({ class: "button" }, h(Icon, { name: "up" }), span(null, busy ? t("file.busy") : value ? t("file.replace") : t("file.choose")), input({ id, type: "file", class: "hidden", disabled: disabled || busy, onChange: (event) => void upload(event.currentTarget.files?.[0]) })),
    value ? h(Button, { quiet: true, icon: "close", label: t("clear"), onClick: () => onChange("") }) : null);
}
