// The test clock of a test account: a bar on every page with the day, and steps forward.
import { useState } from "preact/hooks";
import { get, post } from "./api.js";
import { moment } from "./format.js";
import { div, h, span, strong } from "./html.js";
import { Button, say, sayError } from "./parts.js";
import { me } from "./schema.js";
import { t } from "./words.js";

const DAY = 86_400_000;
/** @type {[string, number][]} */
const STEPS = [["clock.day", 1], ["clock.week", 7], ["clock.month", 30]];

export function ClockBar() {
  const [busy, setBusy] = useState(false);
  const now = me.value.account.now;
  /** @param {number} days */
  const advance = async (days) => {
    setBusy(true);
    try {
      await post("/v1/test-clock/advance", { to: new Date(Date.parse(now) + days * DAY).toISOString() });
      me.value = (await get("/v1/me")).data;
      say(t("clock.done", { at: moment(me.value.account.now) }));
    } catch (error) { sayError(error); } finally { setBusy(false); }
  };
  return div({ class: "clock", role: "region", "aria-label": t("clock.title") }, strong(null, t("clock.title")), span(null, moment(now)),
    STEPS.map(([word, days]) => h(Button, { key: word, small: true, busy, onClick: () => void advance(days) }, t(/** @type {any} */ (word)))));
}
