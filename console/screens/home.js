import { div, h } from "../html.js";
import { Head } from "../parts.js";
export const Home = () => div({ class: "page" }, h(Head, { title: "Home" }));
