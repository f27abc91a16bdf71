// A server without mail settings stores mail instead of sending it.
import { say } from "./parts.js";
import { said, t } from "./words.js";

export const STORES_MAIL = document.documentElement.dataset.mail === "stored";

/** The sender of mail of accounts without a verified domain. */
export const SERVER_SENDER = document.documentElement.dataset.sender ?? "";

/** Says that a mail is on its way, or that it was stored, and what the server warns of, until it is closed.
 * @param {string} text @param {string} to @param {string[]} [warnings] */
export const sayMailed = (text, to, warnings = []) => void say(STORES_MAIL ? t("send.kept", { to }) : text, { icon: STORES_MAIL ? "alert" : undefined, stays: warnings.length > 0, detail: warnings.map((one) => said(one) || one).join(" · ") });
