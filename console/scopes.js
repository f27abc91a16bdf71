// The scopes of a key: everything, reading everything, or reading and changing per area.
import { div, fieldset, h, input, label, legend, span, table, tbody, td, th, thead, tr } from "./html.js";
import { may, tables } from "./schema.js";
import { t, word } from "./words.js";

/** @param {import("./field.js").Control} properties */
export function ScopesBox({ id, value, onChange, disabled }) {
  const scopes = /** @type {string[]} */ (Array.isArray(value) ? value : []);
  const areas = allAreas();
  const reading = areas.map((area) => `${area}.read`).filter(may);
  const now = scopes.includes("*") ? "all" : scopes.length > 0 && scopes.length === reading.length && reading.every((scope) => scopes.includes(scope)) ? "read" : "some";
  /** @param {string} name @param {string[]} next @param {boolean} [allowed] */
  const preset = (name, next, allowed = true) => !allowed ? null : label(null, input({ type: "radio", name: `${id}-preset`, checked: now === name, disabled, onChange: () => onChange(next) }), span(null, word([`scope.preset.${name}`], name)));
  return div({ id, class: "scopes-box", tabIndex: -1 },
    fieldset({ class: "radios" }, legend({ class: "hidden" }, t("field.scopes")), preset("some", scopes.includes("*") ? [] : scopes), preset("read", reading), preset("all", ["*"], may("*.*"))),
    now === "all" ? null : h(Areas, { areas, scopes, onChange, disabled }));
}

function allAreas() {
  const named = Object.values(tables).map((one) => one.area);
  return [...new Set([...named, "settings", "audit", "finance"])].filter((area) => /^[a-z]+$/.test(area)).sort((one, other) => word([`area.${one}`], one).localeCompare(word([`area.${other}`], other)));
}

/** @param {{ areas: string[], scopes: string[], onChange: (scopes: string[]) => void, disabled?: boolean }} properties */
function Areas({ areas, scopes, onChange, disabled }) {
  const chosen = new Set(scopes);
  /** Whoever changes records also reads them. @param {string} area @param {"read" | "write"} verb */
  const toggle = (area, verb) => {
    const next = new Set(chosen);
    if (next.delete(`${area}.${verb}`)) { if (verb === "read") next.delete(`${area}.write`); }
    else { next.add(`${area}.${verb}`); if (verb === "write") next.add(`${area}.read`); }
    onChange([...next]);
  };
  /** @param {string} area @param {"read" | "write"} verb @param {string} name */
  const box = (area, verb, name) => input({ type: "checkbox", "aria-label": `${name}: ${t(`scope.${verb}`)}`, checked: chosen.has(`${area}.${verb}`), disabled: disabled || !may(`${area}.${verb}`), onChange: () => toggle(area, verb) });
  return div({ class: "scopes" }, table({ "aria-label": t("field.scopes") }, thead(null, tr(null, th({ scope: "col" }, t("scope.area")), th({ scope: "col" }, t("scope.read")), th({ scope: "col" }, t("scope.write")))),
    tbody(null, areas.map((area) => {
      const name = word([`area.${area}`], area);
      return tr({ key: area }, th({ scope: "row" }, name), td(null, box(area, "read", name)), td(null, area === "audit" ? null : box(area, "write", name)));
    }))));
}
