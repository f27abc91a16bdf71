// Asks for the password again before a dangerous action, when the last time is more than 15 minutes ago.
import { useState } from "preact/hooks";
import { ApiError, post } from "./api.js";
import { Dialog, openDialog } from "./dialog.js";
import { TextBox } from "./field.js";
import { a, div, h, input, label, p } from "./html.js";
import { me } from "./schema.js";
import { t } from "./words.js";

/** @type {Promise<boolean> | null} */
let asking = null;

/** Returns whether the password was given. Requests that wait at the same time share the question.
 * @returns {Promise<boolean>} */
export function askPassword() {
  asking ??= new Promise((/** @type {(given: boolean) => void} */ resolve) => {
    openDialog(({ close }) => h(Ask, { answer: (given) => { asking = null; close(); resolve(given); } }));
  });
  return asking;
}

/** @param {{ answer: (given: boolean) => void }} properties */
function Ask({ answer }) {
  const [password, setPassword] = useState("");
  const run = async () => {
    try {
      await post("/confirm", { password }, { keep: true });
    } catch (error) {
      throw error instanceof ApiError && error.status === 403 ? new Error(t("password.wrong")) : error;
    }
    answer(true);
  };
  return h(Dialog, { title: t("password.title"), action: t("password.continue"), close: () => answer(false), run, disabled: !password },
    p(null, t("password.text")),
    // Password managers look for the name that belongs to a password.
    input({ type: "text", class: "hidden", autocomplete: "username", value: me.value.user.email ?? "", readOnly: true, tabIndex: -1, "aria-hidden": "true" }),
    div({ class: "field" }, label({ for: "again-password" }, t("me.password")), h(TextBox, { id: "again-password", type: "password", autocomplete: "current-password", value: password, onChange: setPassword })),
    p({ class: "help" }, a({ href: "/sign-in", target: "_blank" }, t("password.elsewhere"))));
}
