// What is shown only once: the secret of a webhook, the link of an invitation.
import { useRef, useState } from "preact/hooks";
import { Dialog, openDialog } from "./dialog.js";
import { div, h, input, p } from "./html.js";
import { Button } from "./parts.js";
import { t } from "./words.js";

/** Shows what a response has only once, if anything.
 * @param {import("./api.js").Answer} answer */
export function showOnce(answer) {
  const link = answer.meta?.invite_url;
  const secret = answer.data?.secret;
  if (link) openDialog(({ close }) => h(Once, { title: t("once.invite"), text: t("once.invite_text"), value: link, close }));
  else if (secret) openDialog(({ close }) => h(Once, { title: t("once.secret"), text: t("once.secret_text"), value: secret, close }));
}

/** @param {{ title: string, text: string, value: string, close: () => void }} properties */
function Once({ title, text, value, close }) {
  return h(Dialog, { title, action: t("once.kept"), single: true, close, run: async () => {} }, p(null, text), h(CopyBox, { value, label: title }));
}

/** A text to copy. Without a clipboard (plain HTTP), the text is selected.
 * @param {{ value: string, label: string }} properties */
export function CopyBox({ value, label }) {
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [done, setDone] = useState(false);
  const copy = async () => {
    box.current?.select();
    if (!navigator.clipboard) return;
    await navigator.clipboard.writeText(value).then(() => setDone(true), () => {});
  };
  return div({ class: "copy" }, input({ ref: box, type: "text", readOnly: true, value, "aria-label": label, onFocus: (event) => event.currentTarget.select() }), h(Button, { icon: done ? "check" : "copy", onClick: () => void copy() }, done ? t("once.copied") : t("once.copy")));
}
