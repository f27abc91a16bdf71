// Bars drawn by hand in real pixels, with their numbers, and the same as a table for everybody.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { compact } from "./format.js";
import { details, div, figure, g, line, rect, summary, svg, table, tbody, td, text, th, thead, tr } from "./html.js";
import { t } from "./words.js";

/** @typedef {{ label: string, value: number, tone?: string, shown: string, href?: string }} Bar */

const HEIGHT = 200;
const FOOT = 24;
const HEAD = 22;
/** The width of a letter of a number. Where bars stand closer than their numbers need, they lie, a line each, with room for the label and the number. */
const LETTER = 5.8;
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
  // The text has the size that the reader has chosen.
  const [em] = useState(() => (parseFloat(getComputedStyle(document.documentElement).fontSize) || 16) / 16);
  const [foot, head, each, side] = [FOOT * em, HEAD * em, LINE * em, SIDE * em];
  const top = Math.max(1, ...bars.map((bar) => bar.value));
  const step = width / Math.max(1, bars.length);
  const thick = Math.min(44, step * 0.62);
  const numbers = bars.map((bar) => (bar.value > 0 ? compact(bar.value) : ""));
  const widest = Math.max(...numbers.map((number) => number.length)) * LETTER * em + 8;
  const lies = step < Math.max(NARROW * em, widest);
  const height = lies ? each * bars.length : HEIGHT;
  const room = lies ? Math.max(20, width - side - widest) : HEIGHT - foot - head;
  return figure({ class: "chart", "aria-label": title }, div({ ref: box },
    svg({ width, height, role: "img", "aria-label": title },
      line(lies ? { x1: side - 0.5, x2: side - 0.5, y1: 0, y2: height, class: "axis" } : { x1: 0, x2: width, y1: HEIGHT - foot + 0.5, y2: HEIGHT - foot + 0.5, class: "axis" }),
      bars.map((bar, place) => {
        const long = Math.max(bar.value > 0 ? 2 : 0, Math.round((bar.value / top) * room));
        const [middle, base] = [step * place + step / 2, each * place + each * 0.67];
        return g({ key: place },
          rect({ ...(lies ? { x: side, y: each * place + 4, width: long, height: each - 8 } : { x: middle - thick / 2, y: HEIGHT - foot - long, width: thick, height: long }), rx: 4, class: `bar ${bar.tone ?? "blue"}` }),
          numbers[place] ? text({ ...(lies ? { x: side + long + 6, y: base } : { x: middle, y: HEIGHT - foot - long - 6 }), class: lies ? "bar-number beside" : "bar-number" }, numbers[place]) : null,
          text({ ...(lies ? { x: side / 2 - 4, y: base } : { x: middle, y: HEIGHT - 6 }), class: "bar-label" }, bar.label));
      }))),
    details({ class: "as-table" }, summary(null, t("chart.table")), table(null, thead(null, tr(null, th({ scope: "col" }, title), th({ scope: "col", class: "number" }, unit))),
      tbody(null, bars.map((bar, place) => tr({ key: place }, td(null, bar.label), td({ class: "number" }, bar.shown)))))));
}
