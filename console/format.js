// Numbers, days and moments as the reader writes them. Days are texts and never pass through a local Date.
import { unscaled, scaled } from "./money.js";
import { me } from "./schema.js";
import { language, t } from "./words.js";

const locale = language === "nl" ? "nl-NL" : "en-GB";
const DECIMAL = language === "nl" ? "," : ".";
const GROUP = language === "nl" ? "." : ",";
const MONTH = (language === "nl" ? "jan feb mrt apr mei jun jul aug sep okt nov dec" : "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec").split(" ");

/** The first formatter of the browser takes 30 ms to make, others some: each is made when it is first used, and amounts and
 * days, which every list shows, are formatted by hand.
 * @template T @param {() => T} make */
function lazy(make) {
  /** @type {T | undefined} */
  let made;
  return () => (made ??= make());
}
const short = lazy(() => new Intl.NumberFormat(locale, { notation: "compact" }));
const relative = lazy(() => new Intl.RelativeTimeFormat(locale, { numeric: "auto" }));
/** The same for those with the time zone of the account, which may change.
 * @template T @param {(zone: string) => T} make */
function inZone(make) {
  /** @type {{ zone: string, made: T } | undefined} */
  let last;
  return () => {
    const zone = me.value.account.time_zone || "UTC";
    if (!last || last.zone !== zone) last = { zone, made: make(zone) };
    return last.made;
  };
}
const longMoment = inZone((timeZone) => new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZone }));
const isoDay = inZone((timeZone) => new Intl.DateTimeFormat("en-CA", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" }));

/** @typedef {string | number | null | undefined} Decimal */

/** An amount in euros.
 * @param {Decimal} value */
export function money(value) {
  if (value === null || value === undefined || value === "") return "";
  const text = decimal(typeof value === "number" ? value.toFixed(2) : value, 2);
  if (language === "nl") return `€\u00a0${text}`;
  return text.startsWith("-") ? `-€${text.slice(1)}` : `€${text}`;
}
/** @param {bigint} value */
export const moneyOfCents = (value) => money(unscaled(value, 2));
/** @param {number} value */
export const count = (value) => decimal(value);

/** A decimal with at least `decimals` decimals, in the reader's notation.
 * @param {Decimal} value @param {number} [decimals] @param {boolean} [grouped] */
export function decimal(value, decimals = 0, grouped = true) {
  const exact = scaled(value, 6);
  if (exact === null) return value === null || value === undefined ? "" : String(value);
  const [units = "", fraction = ""] = unscaled(exact, 6, decimals).split(".");
  const shown = grouped ? units.replace(/\B(?=(\d{3})+$)/g, GROUP) : units;
  return fraction ? shown + DECIMAL + fraction : shown;
}

/** A number in few letters: 2 billion is "2bn" in English and "2 mld." in Dutch.
 * @param {number} value */
export const compact = (value) => (value < 1000 ? count(Math.round(value)) : short().format(value));

/** @param {Decimal} value */
export const price = (value) => (value === null || value === undefined || value === "" ? "" : `${language === "nl" ? "€ " : "€"}${decimal(value, 2)}`);
/** @param {Decimal} value */
export const percent = (value) => (value === null || value === undefined || value === "" ? "" : `${decimal(value)} %`);

/** @param {string | null | undefined} text */
export const day = (text) => (text ? `${dayAndMonth(text)} ${text.slice(0, 4)}` : "");

/** @param {string} text */
const dayAndMonth = (text) => `${Number(text.slice(8, 10))} ${MONTH[Number(text.slice(5, 7)) - 1] ?? ""}`;

/** Without the year if it is the current one.
 * @param {string | null | undefined} text */
export const nearDay = (text) => (text && text.slice(0, 4) === today().slice(0, 4) ? dayAndMonth(text) : day(text));

/** @param {string | null | undefined} text */
export const moment = (text) => (text ? longMoment().format(new Date(text)).replace(/\.(?= )/, "") : "");

/** Within a day as "12 minutes ago", later as a day.
 * @param {string | null | undefined} text */
export function ago(text) {
  if (!text) return "";
  const seconds = (Date.parse(text) - now()) / 1000;
  if (Math.abs(seconds) < 60) return t("time.now");
  if (Math.abs(seconds) < 3600) return relative().format(Math.round(seconds / 60), "minute");
  if (Math.abs(seconds) < 86_400) return relative().format(Math.round(seconds / 3600), "hour");
  return nearDay(dayOf(text));
}

/** The day on which a moment falls in the account's time zone.
 * @param {string} text */
export const dayOf = (text) => isoDay().format(new Date(text));

/** Today in the account's time zone, on the account's clock. */
export const today = () => dayOf(new Date(now()).toISOString());

/** The number of days from today: negative if it has passed.
 * @param {string} text */
export const daysUntil = (text) => Math.round((utc(text) - utc(today())) / 86_400_000);

/** @param {string} text @param {number} days */
export const plusDays = (text, days) => new Date(utc(text) + days * 86_400_000).toISOString().slice(0, 10);

/** Whether a moment is still to come, on the account's clock, which may be a little ahead of this page.
 * @param {string} text */
export const isAhead = (text) => Date.parse(text) > now() + 60_000;

const loaded = Date.now();
function now() {
  const server = Date.parse(me.value.account.now ?? "");
  return me.value.account.test_clock && server ? server : Number.isNaN(server) ? Date.now() : server + Date.now() - loaded;
}

/** @param {string} text */
const utc = (text) => Date.UTC(Number(text.slice(0, 4)), Number(text.slice(5, 7)) - 1, Number(text.slice(8, 10)));

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const kibibytes = bytes / 1024;
  return kibibytes < 1024 ? `${decimal(kibibytes.toFixed(0))} KB` : `${decimal((kibibytes / 1024).toFixed(1))} MB`;
}

/** @param {number} minutes */
export const hours = (minutes) => `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;

/** @param {string} iban */
export const iban = (iban) => iban.replace(/\s/g, "").toUpperCase().replace(/(.{4})(?=.)/g, "$1 ");

/** Reads what somebody typed as a number. The reader's own mark is the decimal one; the other may only group by three. What
 * could be two numbers is neither.
 * @param {string} typed @returns {{ value: string } | { either: [string, string] } | { wrong: true }} */
export function readNumber(typed) {
  const text = typed.replace(/[\s\u00a0€%]/g, "").replace("−", "-");
  if (text === "") return { value: "" };
  const match = /^(-?)([\d.,]*)$/.exec(text);
  if (!match || !/\d/.test(text)) return { wrong: true };
  const sign = match[1] ?? "";
  const digits = match[2] ?? "";
  const marks = digits.replace(/\d/g, "");
  /** @param {string} units @param {string} fraction */
  const number = (units, fraction) => sign + (units.replace(/^0+(?=\d)/, "") || "0") + (fraction ? `.${fraction}` : "");
  if (marks === "") return { value: number(digits, "") };
  if (marks === DECIMAL) {
    const [units = "", fraction = ""] = digits.split(DECIMAL);
    return { value: number(units, fraction) };
  }
  const grouped = new RegExp(`^\\d{1,3}(\\${GROUP}\\d{3})+(\\${DECIMAL}\\d*)?$`);
  if (marks === GROUP) {
    const [units = "", fraction = ""] = digits.split(GROUP);
    if (fraction.length === 3 && units !== "" && units !== "0" && units.length <= 3) return { either: [number(units + fraction, ""), number(units, fraction)] };
    return { value: number(units, fraction) };
  }
  if (!grouped.test(digits)) return { wrong: true };
  const [units = "", fraction = ""] = digits.split(GROUP).join("").split(DECIMAL);
  return { value: number(units, fraction) };
}

/** Reads what somebody typed as a day: 4-5, 4 mei, today, +14, fr. Null if it is none.
 * @param {string} typed @returns {string | null} */
export function readDay(typed) {
  const text = typed.trim().toLowerCase().replace(/\.$/, "");
  if (text === "") return "";
  const base = today();
  if (/^(vandaag|today|nu|now)$/.test(text)) return base;
  if (/^(morgen|tomorrow)$/.test(text)) return plusDays(base, 1);
  if (/^(gisteren|yesterday)$/.test(text)) return plusDays(base, -1);
  const offset = /^([+-])\s*(\d{1,4})$/.exec(text);
  if (offset) return plusDays(base, Number(offset[1] + (offset[2] ?? "")));
  const week = ["zo|su", "ma|mo", "di|tu", "wo|we", "do|th", "vr|fr", "za|sa"].findIndex((names) => new RegExp(`^(${names})[a-z]*$`).test(text));
  if (week >= 0 && !/^(mei|maa|may|mar)/.test(text)) return plusDays(base, ((week - new Date(utc(base)).getUTCDay() + 6) % 7) + 1);
  const written = /^(\d{4})-(\d{1,2})-(\d{1,2})$/.exec(text);
  if (written) return valid(Number(written[1]), Number(written[2]), Number(written[3]));
  const short = /^(\d{1,2})[-/. ](\d{1,2})(?:[-/. ](\d{2,4}))?$/.exec(text);
  if (short) return valid(year(short[3]), Number(short[2]), Number(short[1]));
  const named = /^(\d{1,2})\s+([a-z]{3,})\.?(?:\s+(\d{2,4}))?$/.exec(text);
  const month = named ? MONTHS().findIndex((names) => names.some((name) => name.startsWith(named[2] ?? "?") || (named[2] ?? "").startsWith(name.slice(0, 3)))) : -1;
  return named && month >= 0 ? valid(year(named[3]), month + 1, Number(named[1])) : null;
}

const ENGLISH = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];
const MONTHS = lazy(() => {
  const own = new Intl.DateTimeFormat(locale, { month: "long", timeZone: "UTC" });
  return ENGLISH.map((name, place) => [name, own.format(Date.UTC(2026, place, 1)).toLowerCase(), place === 2 ? "mrt" : name]);
});

/** @param {string | undefined} text */
const year = (text) => (!text ? Number(today().slice(0, 4)) : text.length === 2 ? 2000 + Number(text) : Number(text));

/** @param {number} year @param {number} month @param {number} date */
function valid(year, month, date) {
  const at = new Date(Date.UTC(year, month - 1, date));
  const same = at.getUTCFullYear() === year && at.getUTCMonth() === month - 1 && at.getUTCDate() === date;
  return same ? at.toISOString().slice(0, 10) : null;
}
