// Elements as functions: div({ class: "row" }, "text"). The type check knows every attribute.
import { h } from "preact";

/** @typedef {import("preact").ComponentChildren} Children */
/** @typedef {import("preact").VNode<any>} View */
/** @typedef {import("preact").JSX.IntrinsicElements} Elements */
/** @typedef {{ [Name in keyof Elements]: (properties?: Elements[Name] | null, ...children: Children[]) => View }} Makers */

const makers = /** @type {Makers} */ (
  new Proxy(
    {},
    {
      get: (_, name) => (/** @type {any} */ properties, /** @type {Children[]} */ ...children) =>
        h(/** @type {any} */ (name), properties, ...children),
    },
  )
);

export const {
  a, article, aside, b, button, caption, circle, code, datalist, dd, details, dialog, div, dl, dt, fieldset, figure, footer, form, g, h1, h2,
  h3, header, iframe, img, input, kbd, label, legend, li, line, main, nav, ol, optgroup, option, output, p, path, pre, rect, section, select,
  small, span, strong, summary, svg, table, tbody, td, text, textarea, tfoot, th, thead, time, tr, ul,
} = makers;
export { h };
