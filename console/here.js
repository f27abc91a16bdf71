// Who else has this screen open. The server forgets somebody who has not said so for 45 seconds.
import { useEffect, useState } from "preact/hooks";
import { patch } from "./api.js";
import { h, span } from "./html.js";
import { Icon } from "./parts.js";
import { t } from "./words.js";

const EVERY = 20_000;

/** @param {{ address: string }} properties */
export function Others({ address }) {
  const [names, setNames] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    let shown = true;
    const say = () => {
      if (document.hidden) return;
      patch("/v1/me/here", { address }, { quiet: true, keep: true }).then((answer) => { if (shown) setNames(answer.data.others); }, () => {});
    };
    say();
    const timer = setInterval(say, EVERY);
    return () => { shown = false; clearInterval(timer); };
  }, [address]);
  if (names.length === 0) return null;
  return span({ class: "pill wait others", role: "status" }, h(Icon, { name: "clients" }), t("here.others", { n: names.length, names: names.join(", ") }));
}
