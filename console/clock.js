// The test clock of a test account: a bar on every page with the day, and steps forward.
import { useState } from "preact/hooks";
import { get, post } from "./api.js";
import { DayBox } from "./field.js";
import { day, moment } from "./format.js";
import { div, form, h, span, strong } from "./html.js";
import { Button, say, sayError } from "./parts.js";
import { me } from "./schema.js";
import { t } from "./words.js";

const DAY = 86_400_000;
/** @type {[string, (now: string) => string][]} */
const STEPS = [["clock.day", (now) => later(now, 1)], ["clock.week", (now) => later(now, 7)], ["clock.month", nextMonth]];

/** @param {string} now @param {number} days */
const later = (now, days) => new Date(Date.parse(now) + days * DAY).toISOString();

/** The same day of the next month; its last day if it is shorter.
 * @param {string} now */
function nextMonth(now) {
  const at = new Date(now);
  const day = at.getUTCDate();
  at.setUTCDate(1);
  at.setUTCMonth(at.getUTCMonth() + 1);
  const last = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate();
  at.setUTCDate(Math.min(day, last));
  return at.toISOString();
}

export function ClockBar() {
  const [busy, setBusy] = useState(false);
  const [to, setTo] = useState("");
  const now = me.value.account.now;
  /** @param {string} to */
  const advance = async (to) => {
    setBusy(true);
    try {
      await post("/v1/test-clock/advance", { to });
      me.value = (await get("/v1/me")).data;
      say(t("clock.done", { at: moment(me.value.account.now) }));
    } catch (error) { sayError(error); } finally { setBusy(false); }
  };
  return div({ class: "clock", role: "region", "aria-label": t("clock.title") }, strong(null, t("clock.title")), span(null, moment(now)),
    STEPS.map(([word, step]) => h(Button, { key: word, small: true, busy, onClick: () => void advance(step(now)) }, t(/** @type {any} */ (word)))),
    form({ class: "clock-to", onSubmit: (event) => { event.preventDefault(); if (to && to <= now.slice(0, 10)) say(t("clock.later", { day: day(now.slice(0, 10)) }), { error: true }); else if (to) void advance(`${to}T${now.slice(11)}`); } },
      h(DayBox, { id: "clock-to", label: t("clock.to"), placeholder: t("clock.to"), value: to, onChange: setTo }), h(Button, { type: "submit", small: true, busy, disabled: !to }, t("clock.advance"))));
}
