// An address that is none, and one that the role of the user does not allow.
import { div, h } from "../html.js";
import { Missing } from "../missing.js";
import { Button, Empty, Head } from "../parts.js";
import { me } from "../schema.js";
import { choiceName, t } from "../words.js";

export const Nowhere = () => h(Missing, null);

export const Forbidden = () => div({ class: "page" }, h(Head, { title: t("forbidden.title") }), h(Empty, { icon: "alert", title: t("forbidden.text", { role: choiceName("users", "role", me.value.user.role ?? "").toLowerCase() }) }, h(Button, { href: "/" }, t("menu.home"))));
