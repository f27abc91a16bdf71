// An address that is none.
import { div, h } from "../html.js";
import { Button, Empty } from "../parts.js";
import { t } from "../words.js";

export const Nowhere = () => div({ class: "page" }, h(Empty, { icon: "search", title: t("missing.title"), text: t("missing.text") }, h(Button, { href: "/" }, t("menu.home"))));
