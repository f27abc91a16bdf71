// Bars drawn by hand in real pixels, with their numbers, and the same as a table for everybody.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { decimal } from "./format.js";
import { details, div, figure, g, line, rect, summary, svg, table, tbody, td, text, th, thead, tr } from "./html.js";
import { t } from "./words.js";

/** @typedef {{ label: string, value: number, tone?: string, shown: string, href?: string }} Bar */

const HEIGHT = 200;
const FOOT = 24;
const HEAD = 22;
/** Where bars stand closer than this, their numbers would touch: there they lie, a line each, with room for the label and the number. */
const NARROW = 34;
const LINE = 24;
const SIDE = 38;

/** @param {{ title: string, bars: Bar[], unit: string }} properties */
export function BarChart({ title, bars, unit }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver((entries) => setWidth(Math.max(240, entries[0]?.contentRect.width ?? 600)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const top = Math.max(1, ...bars.map((bar) => bar.value));
  const step = width / Math.max(1, bars.length);
  const thick = Math.min(44, step * 0.62);
  const lies = step < NARROW;
  const height = lies ? LINE * bars.length : HEIGHT;
  const room = lies ? width - 2 * SIDE : HEIGHT - FOOT - HEAD;
  return figure({ class: "chart", "aria-label": title }, div({ ref: box },
    svg({ width, height, role: "img", "aria-label": title },
      line(lies ? { x1: SIDE - 0.5, x2: SIDE - 0.5, y1: 0, y2: height, class: "axis" } : { x1: 0, x2: width, y1: HEIGHT - FOOT + 0.5, y2: HEIGHT - FOOT + 0.5, class: "axis" }),
      bars.map((bar, place) => {
        const long = Math.max(bar.value > 0 ? 2 : 0, Math.round((bar.value / top) * room));
        const [middle, base] = [step * place + step / 2, LINE * place + 16];
        return g({ key: place },
          rect({ ...(lies ? { x: SIDE, y: base - 12, width: long, height: LINE - 8 } : { x: middle - thick / 2, y: HEIGHT - FOOT - long, width: thick, height: long }), rx: 4, class: `bar ${bar.tone ?? "blue"}` }),
          bar.value > 0 ? text({ ...(lies ? { x: SIDE + long + 20, y: base } : { x: middle, y: HEIGHT - FOOT - long - 6 }), class: "bar-number" }, short(bar.value)) : null,
          text({ ...(lies ? { x: SIDE / 2 - 4, y: base } : { x: middle, y: HEIGHT - 6 }), class: "bar-label" }, bar.label));
      }))),
    details({ class: "as-table" }, summary(null, t("chart.table")), table(null, thead(null, tr(null, th({ scope: "col" }, title), th({ scope: "col", class: "number" }, unit))),
      tbody(null, bars.map((bar, place) => tr({ key: place }, td(null, bar.label), td({ class: "number" }, bar.shown)))))));
}

/** 12.345 as 12,3k.
 * @param {number} value */
function short(value) {
  if (value < 1000) return decimal(Math.round(value));
  if (value >= 999_500) return `${decimal((value / 1e6).toFixed(value < 1e7 ? 1 : 0))}M`;
  return `${decimal((value / 1000).toFixed(value < 10_000 ? 1 : 0))}k`;
}
