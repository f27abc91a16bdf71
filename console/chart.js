// Bars drawn by hand in real pixels, with their numbers, and the same as a table for everybody.
import { useEffect, useRef, useState } from "preact/hooks";
import { decimal } from "./format.js";
import { details, div, figure, g, line, rect, summary, svg, table, tbody, td, text, th, thead, tr } from "./html.js";
import { t } from "./words.js";

/** @typedef {{ label: string, value: number, tone?: string, shown: string, href?: string }} Bar */

const HEIGHT = 200;
const FOOT = 24;
const HEAD = 22;

/** @param {{ title: string, bars: Bar[], unit: string }} properties */
export function BarChart({ title, bars, unit }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(600);
  useEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver((entries) => setWidth(Math.max(240, entries[0]?.contentRect.width ?? 600)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const top = Math.max(1, ...bars.map((bar) => bar.value));
  const step = width / Math.max(1, bars.length);
  const thick = Math.min(44, step * 0.62);
  const room = HEIGHT - FOOT - HEAD;
  return figure({ class: "chart", "aria-label": title }, div({ ref: box },
    svg({ width, height: HEIGHT, role: "img", "aria-label": title },
      line({ x1: 0, x2: width, y1: HEIGHT - FOOT + 0.5, y2: HEIGHT - FOOT + 0.5, class: "axis" }),
      bars.map((bar, place) => {
        const tall = Math.max(bar.value > 0 ? 2 : 0, Math.round((bar.value / top) * room));
        const middle = step * place + step / 2;
        return g({ key: place },
          rect({ x: middle - thick / 2, y: HEIGHT - FOOT - tall, width: thick, height: tall, rx: 4, class: `bar ${bar.tone ?? "blue"}` }),
          bar.value > 0 && step > 34 ? text({ x: middle, y: HEIGHT - FOOT - tall - 6, class: "bar-number" }, short(bar.value)) : null,
          text({ x: middle, y: HEIGHT - 6, class: "bar-label" }, bar.label));
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
