import { div, h } from "../html.js";
import { Head } from "../parts.js";
export const Me = () => div({ class: "page" }, h(Head, { title: "Me" }));
