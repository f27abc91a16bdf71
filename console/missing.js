// A record that is not there, and an address that is none: the same page, with the way back.
import { a, div, h } from "./html.js";
import { Button, Empty, Head, Problem } from "./parts.js";
import { t, tableName } from "./words.js";

/** @param {{ table?: import("./schema.js").Table, error?: import("./api.js").ApiError, retry?: () => void }} properties Without a table it is an address that is none. */
export function Missing({ table, error, retry }) {
  if (error && error.status !== 404) return div({ class: "page" }, h(Problem, { error, retry }));
  const [href, name] = table ? [table.address, tableName(table.key)] : ["/", t("menu.home")];
  return div({ class: "page" }, h(Head, { title: t("missing.title"), over: a({ href }, name) }), h(Empty, { icon: "search", title: t("missing.text") }, h(Button, { href }, t("missing.back", { to: name.toLowerCase() }))));
}
