import { div, h } from "../html.js";
import { Head } from "../parts.js";
export const Nowhere = () => div({ class: "page" }, h(Head, { title: "Nowhere" }));
