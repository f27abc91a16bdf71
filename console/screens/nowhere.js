// An address that is none.
import { div, h } from "../html.js";
import { Button, Empty, Head } from "../parts.js";
import { t } from "../words.js";

export const Nowhere = () => div({ class: "page" }, h(Head, { title: t("missing.title") }), h(Empty, { icon: "search", title: t("missing.text") }, h(Button, { href: "/" }, t("menu.home"))));
