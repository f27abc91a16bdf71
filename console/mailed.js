// What is said about a mail. A server without mail settings stores mail instead of sending it.
import { isAhead, moment } from "./format.js";
import { div } from "./html.js";
import { say } from "./parts.js";
import { said, t } from "./words.js";

export const STORES_MAIL = document.documentElement.dataset.mail === "stored";

/** The sender of mail of accounts without a verified domain. */
export const SERVER_SENDER = document.documentElement.dataset.sender ?? "";

/** Why a mail has not arrived, and when it is tried again.
 * @param {{ mail: import("./api.js").Item }} properties */
export function Refusal({ mail }) {
  const again = mail.status === "retrying";
  if (!again && mail.status !== "failed") return null;
  const next = mail.next_attempt_at;
  return div({ class: again ? "soft" : "late" }, said(mail.reason) || mail.reason, again && next && isAhead(next) ? div(null, t("mails.retry_at", { at: moment(next) })) : null);
}

/** Says that a mail is on its way, or that it was stored, and what the server warns of, until it is closed.
 * @param {string} text @param {string} to @param {string[]} [warnings] */
export const sayMailed = (text, to, warnings = []) => void say(STORES_MAIL ? t("send.kept", { to }) : text, { icon: STORES_MAIL ? "alert" : undefined, stays: warnings.length > 0, detail: warnings.map((one) => said(one) || one).join(" · ") });
