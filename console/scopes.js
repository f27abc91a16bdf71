// The scopes of a key: reading and changing per area, or everything.
import { div, input, label, span, table, tbody, td, th, thead, tr } from "./html.js";
import { may, tables } from "./schema.js";
import { t, word } from "./words.js";

/** @param {import("./field.js").Control} properties */
export function ScopesBox({ id, value, onChange, disabled }) {
  const chosen = new Set(/** @type {string[]} */ (Array.isArray(value) ? value : []));
  const areas = [...new Set([...Object.values(tables).map((one) => one.area), "settings", "audit"])].filter((area) => /^[a-z]+$/.test(area)).sort();
  /** @param {string} scope */
  const toggle = (scope) => { const next = new Set(chosen); if (!next.delete(scope)) next.add(scope); onChange([...next]); };
  /** @param {string} scope @param {string} name */
  const box = (scope, name) => input({ type: "checkbox", "aria-label": name, checked: chosen.has("*") || chosen.has(scope), disabled: disabled || chosen.has("*") || !may(scope), onChange: () => toggle(scope) });
  return div({ id, class: "scopes", tabIndex: -1 },
    may("*.*") ? label({ class: "scope-all" }, input({ type: "checkbox", checked: chosen.has("*"), disabled, onChange: () => onChange(chosen.has("*") ? [] : ["*"]) }), span(null, t("scope.all"))) : null,
    table(null, thead(null, tr(null, th({ scope: "col" }, t("scope.area")), th({ scope: "col" }, t("scope.read")), th({ scope: "col" }, t("scope.write")))),
      tbody(null, areas.map((area) => {
        const name = word([`area.${area}`], area);
        return tr({ key: area }, th({ scope: "row" }, name), td(null, box(`${area}.read`, `${name}: ${t("scope.read")}`)), td(null, area === "audit" ? null : box(`${area}.write`, `${name}: ${t("scope.write")}`)));
      }))));
}
