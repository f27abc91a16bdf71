import { div, h } from "../html.js";
import { Head } from "../parts.js";
export const Settings = () => div({ class: "page" }, h(Head, { title: "Settings" }));
