import { div, h } from "../html.js";
import { Head } from "../parts.js";
export const Hours = () => div({ class: "page" }, h(Head, { title: "Hours" }));
