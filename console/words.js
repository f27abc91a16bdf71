// Words in the language of the reader. The English files are the type of the keys. The first screen needs one file; the
// words and the styles of the other screens come after it.
/** @typedef {keyof typeof import("./words/en.json") | keyof typeof import("./words/en.screens.json")} Word */
/** @typedef {Record<string, string | number>} Values */

/** @type {Record<string, any>} */
let words = {};
export const language = document.documentElement.lang === "nl" ? "nl" : "en";
/** @type {Intl.PluralRules | undefined} Takes a millisecond to make. */
let plural;

const assets = document.documentElement.dataset.assets ?? "";

export async function loadWords() {
  words = { ...words, ...(await fetch(`${assets}/words/${language}.json`).then((response) => response.json())) };
}

/** @type {Promise<void> | null} */
let rest = null;

/** Loads what lists and Home do without: the words and the styles of all other screens.
 * @returns {Promise<void>} */
export function loadRest() {
  rest ??= Promise.all([
    fetch(`${assets}/words/${language}.screens.json`).then((response) => response.json()).then((more) => { words = { ...words, ...more }; }),
    loadStyle(`${assets}/screens.css`),
  ]).then(() => {});
  rest.catch(() => { rest = null; });
  return rest;
}

/** @param {string} href @returns {Promise<void>} */
function loadStyle(href) {
  if (document.querySelector(`link[href="${href}"]`)) return Promise.resolve();
  return new Promise((done, failed) => document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: () => done(), onerror: failed })));
}

/** Returns a sentence with its values; the value `n` chooses between singular and plural.
 * @param {Word} key @param {Values} [values] */
export const t = (key, values) => fill(words[key] ?? key, values);

/** Returns the first of these keys that has words, else the fallback.
 * @param {string[]} keys @param {string} fallback @param {Values} [values] */
export function word(keys, fallback, values) {
  const found = keys.find((key) => key in words);
  return found ? fill(words[found], values) : fallback;
}

/** @param {any} entry @param {Values} [values] */
function fill(entry, values = {}) {
  const text = typeof entry === "string" ? entry : entry[(plural ??= new Intl.PluralRules(language)).select(Number(values.n ?? 1))] ?? entry.other;
  return text.replace(/\{(\w+)\}/g, (/** @type {string} */ whole, /** @type {string} */ name) => String(values[name] ?? whole));
}

/** @param {string} name */
const plain = (name) => {
  const text = name.replace(/_id$/, "").replace(/_/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
};

/** @param {string} table @param {string} field */
export const fieldName = (table, field) => word([`field.${table}.${field}`, `field.${field}`], plain(field));

/** What a new account has is named in English; everybody reads it in their own language, until it gets another name.
 * @param {string | null | undefined} name */
export const given = (name) => word([`default.${name}`], name ?? "");

/** The explanation of a field, if it needs one.
 * @param {string} table @param {string} field */
export const fieldHelp = (table, field) => word([`hint.${table}.${field}`, `hint.${field}`], "");

/** @param {string} table @param {string} field @param {string} value */
export const choiceName = (table, field, value) =>
  word([`choice.${table}.${field}.${value}`, `choice.${field}.${value}`, ...(field === "send_type" ? [`mail.${value}`] : []), `status.${value}`], plain(value));

/** @param {string} table @param {number} [n] */
export const tableName = (table, n = 2) => word([`table.${table}`], plain(table), { n });

/** @param {string} table @param {string} action */
export const actionName = (table, action) => word([`action.${table}.${action}`, `action.${action}`], plain(action.replace(/-/g, "_")));

/** What is said when an action is done.
 * @param {string} table @param {string} action */
export const doneText = (table, action) => word([`done.${table}.${action}`, `done.${action}`], t("done", { what: actionName(table, action) }));

/** What an error says to the reader: our words for the server's sentence or for its code, else the sentence itself. A field may
 * have several faults.
 * @param {{ code?: string, message?: string, details?: { field?: string }[] }} error */
export const errorText = (error) => said(error.message ?? "") || word([`error.${error.code}`], error.message || t("error.unknown"), { n: new Set(error.details?.map((one) => one.field)).size });

/** What a sentence of the server is in the reader's words; empty if it has none. The key is the sentence, with names for
 * what differs; the name of a table is translated, and so is a reason.
 * @param {string} sentence @returns {string} */
export function said(sentence) {
  for (const { key, names, pattern } of sentences()) {
    const found = pattern.exec(sentence);
    if (!found) continue;
    const parts = names.map((name, place) => [name, meant(name, found[place + 1] ?? "")]);
    return fill(words[key], Object.fromEntries(parts));
  }
  return "";
}

/** What is wrong with a field.
 * @param {import("./api.js").FieldError} detail */
export const detailText = (detail) => said(detail.message) || word([`field_error.${detail.code}.${lastOf(detail.field)}`, `field_error.${detail.code}`], detail.message);

/** The field at the end of a path: unit_price of rows[2].unit_price.
 * @param {string} path */
export const lastOf = (path) => path.slice(path.lastIndexOf(".") + 1).replace(/\[\d+\]$/, "");

/** @param {string} name @param {string} part @returns {string} */
const meant = (name, part) => (name === "table" ? tableName(part.replace(/ /g, "_")).toLowerCase() : name === "why" ? said(part) || part : part);

/** @type {{ of: Record<string, any>, all: { key: string, names: string[], pattern: RegExp }[] } | null} */
let patterns = null;

/** Made when the first error is shown. */
function sentences() {
  if (patterns?.of !== words) {
    const all = Object.keys(words).filter((key) => key.startsWith("said.")).map((key) => {
      const [first = "", ...rest] = key.slice("said.".length).split("{");
      const parts = rest.map((part) => part.slice(part.indexOf("}") + 1));
      return { key, names: rest.map((part) => part.slice(0, part.indexOf("}"))), pattern: new RegExp(`^${[first, ...parts].map(literal).join("(.+?)")}$`, "s") };
    });
    patterns = { of: words, all };
  }
  return patterns.all;
}

/** @param {string} text */
const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
