// Icons of 16 by 16, drawn with lines of one and a half.
import { path, svg } from "./html.js";

/** @type {Record<string, string>} */
const SHAPES = {
  home: "M2.5 7 8 2.5 13.5 7v6.5h-4v-4h-3v4h-4z",
  invoices: "M3.5 1.5h9v13l-2-1.2-2 1.2-2-1.2-2 1.2h-1zM6 5h4M6 8h4",
  quotes: "M3 1.5h6.5L13 5v9.5H3zM9.5 1.5V5H13M5.5 8.5h5M5.5 11h3",
  workorders: "M5.5 2.5h-2v12h9v-12h-2M5.5 1.5h5v2.5h-5zM5.5 9l1.8 1.8L10.5 7.5",
  subscriptions: "M13.5 6A6 6 0 0 0 3 4.5L2 6M2 2.5V6h3.5M2.5 10A6 6 0 0 0 13 11.5l1-1.500M14 13.5V10h-3.500",
  products: "M8 1.500 14 4.500v7L8 14.500 2 11.500v-7zM2 4.500l6 3 6-3M8 7.500v7",
  clients: "M6 7.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM1.500 13.500c0-2.500 2-4 4.500-4s4.500 1.500 4.500 4M10.500 2.800a2.500 2.500 0 0 1 0 4.500M12 9.800c1.500.5 2.500 1.800 2.500 3.700",
  suppliers: "M1.500 3.500h8v8h-8zM9.500 6.500h3l2 2.500v2.500h-5M4 13.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3zM12 13.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3z",
  deals: "M2 2.500h3.500v11H2zM6.300 2.500h3.500v7H6.300zM10.600 2.500H14v9h-3.400z",
  tickets: "M2 3h12v8.500H8L4.500 14v-2.500H2zM5 6h6M5 8.500h4",
  tasks: "M2.500 2.500h11v11h-11zM5 8l2.200 2.200L11.200 6",
  projects: "M1.500 3.500h4.500l1.500 2h7v8h-13z",
  hours: "M8 14.500a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM8 4.500V8l2.500 1.500",
  files: "M4 1.500h5.500L12.500 4.500v10h-8.500zM9.500 1.500v3h3",
  flows: "M9 1.500 3.500 9H8l-1 5.500L12.500 7H8z",
  settings: "M2 4.500h6M12 4.500h2M2 11.500h2M8 11.500h6M10 6.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM6 13.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.800 10.800 14 14",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  down: "M4 6.500 8 10.500 12 6.500",
  up: "M4 9.500 8 5.500 12 9.500",
  left: "M10 3.500 5.500 8 10 12.500",
  right: "M6 3.500 10.500 8 6 12.500",
  menu: "M2 4.500h12M2 8h12M2 11.500h12",
  more: "M3.500 8h.01M8 8h.01M12.500 8h.01",
  filter: "M2 3.500h12M4.500 8h7M6.500 12.500h3",
  columns: "M2 3h12v10H2zM6 3v10M10 3v10",
  check: "M3 8.500 6.500 12 13 4.500",
  edit: "M10.500 3 13 5.500 5.500 13H3v-2.500z",
  trash: "M2.500 4h11M6 4V2.500h4V4M4 4l.7 10h6.600L12 4",
  send: "M14 2 2 7l5 2 2 5zM14 2 7 9",
  pay: "M1.500 4h13v8.500h-13zM1.500 7h13M4 10h2.500",
  download: "M8 2v8M4.500 7 8 10.500 11.500 7M2.500 13.500h11",
  calendar: "M2.500 3.500h11v10h-11zM2.500 6.500h11M5.500 2v3M10.500 2v3",
  mail: "M1.500 3.500h13v9h-13zM1.500 4.500 8 9l6.500-4.500",
  phone: "M3 2.500h3l1 3-1.500 1.200a8 8 0 0 0 3.800 3.800L10.500 9l3 1v3c-6 .8-11.300-4.500-10.500-10.500z",
  link: "M6.500 9.500l3-3M7 4.500 8.500 3a3 3 0 0 1 4.500 4.500L11.500 9M9 11.500 7.500 13A3 3 0 0 1 3 8.500L4.500 7",
  copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
  drag: "M6 4h.01M6 8h.01M6 12h.01M10 4h.01M10 8h.01M10 12h.01",
  alert: "M8 2 14.500 13.500h-13zM8 6.500V9.500M8 11.500h.01",
  out: "M6 2.500H2.500v11H6M7 8h7M11 5l3 3-3 3",
  note: "M2.500 2.500h11v7l-4 4h-7zM9.500 13.500v-4h4",
};

/** @param {{ name: string, class?: string }} properties */
export function Icon({ name, class: extra = "" }) {
  const dots = name === "more" || name === "drag";
  return svg({ class: `icon ${extra}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    path({ d: SHAPES[name] ?? "", fill: "none", stroke: "currentColor", "stroke-width": dots ? 2.2 : 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" }));
}
