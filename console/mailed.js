// What became of a mail. A server without mail settings stores mail instead of sending it; only the mail itself tells.
import { get } from "./api.js";
import { say } from "./parts.js";
import { t } from "./words.js";

/** @typedef {import("./api.js").Item} Item */
const TRIES = 5;
const WAIT = 800;

/** The outcome of the newest of so many mails that has one: sent, stored, failed, …; empty if none has.
 * @param {number} limit @returns {Promise<string>} */
const outcome = (limit) => get(`/v1/mails?limit=${limit}`, { quiet: true }).then(
  ({ data }) => data.find((/** @type {Item} */ mail) => !["queued", "sending"].includes(mail.status))?.status ?? "", () => "");

/** Whether this server stores mail, as far as its latest mail tells. */
export const storesMail = async () => (await outcome(5)) === "stored";

/** Says that a mail is on its way, and corrects it when the mail turns out to be stored.
 * @param {string} text @param {string} to @param {boolean} [stored] */
export async function sayMailed(text, to, stored = false) {
  const kept = () => void say(t("send.kept", { to }));
  if (stored) return kept();
  const unsay = say(text);
  for (let round = 0; round < TRIES; round++) {
    await new Promise((resume) => setTimeout(resume, WAIT));
    const status = await outcome(1);
    if (status === "stored") { unsay(); kept(); }
    if (status) return;
  }
}
