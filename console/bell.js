// The bell in the top bar: what needs attention, from every screen.
import { useAttention } from "./attention.js";
import { count } from "./format.js";
import { h, span } from "./html.js";
import { Icon, Menu } from "./parts.js";
import { t } from "./words.js";

export function BellMenu() {
  const all = useAttention() ?? [];
  const items = all.map((one) => ({ label: `${count(one.count)} ${one.label}`, icon: one.icon, href: one.href }));
  return h(Menu, { label: t("home.attention"), quiet: true, class: "bell", items: items.length > 0 ? items : [{ label: t("home.nothing"), icon: "check", href: "/" }] },
    h(Icon, { name: "bell" }), all.length > 0 ? span({ class: "bell-count", "aria-hidden": "true" }, String(all.length)) : null, span({ class: "hidden" }, t("home.attention")));
}
