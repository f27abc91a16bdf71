// The start: the words, the schema and the caller, then the frame and the screen of the address.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { busy, outdated } from "./api.js";
import { Dialogs } from "./dialog.js";
import { chosen } from "./drafts.js";
import { div, h, main, span, strong } from "./html.js";
import { startKeys } from "./keys.js";
import { startLive } from "./live.js";
import { Button, Problem, Skeleton, Toasts } from "./parts.js";
import { place, startRouter } from "./router.js";
import { loadSchema, me } from "./schema.js";
import { Side, TopBar } from "./shell.js";
import { routeOf } from "./routes.js";
import { loadWords, t } from "./words.js";

await Promise.all([loadSchema(), loadWords()]);
applyTheme();
startRouter();
startKeys();
startLive();
const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(h(App, null), root);
}

function App() {
  const [drawer, setDrawer] = useState(false);
  const route = routeOf(place.value.path);
  useEffect(() => { setDrawer(false); }, [place.value.path]);
  useEffect(() => { document.title = `${route.title} · ${me.value.account.name ?? "Kantoor"}`; }, [route.title]);
  return div({ class: drawer ? "shell drawer-open" : "shell" },
    h(Side, { close: () => setDrawer(false) }),
    h(TopBar, { openMenu: () => setDrawer(true) }),
    h(Progress, null),
    outdated.value ? div({ class: "notice updated", role: "status" }, span(null, t("updated")), h(Button, { small: true, onClick: () => location.reload() }, t("updated.reload"))) : null,
    main({ id: "main" }, h(Screen, { key: route.key, route })),
    h(Dialogs, null), h(Toasts, null));
}

/** @param {{ route: import("./routes.js").Route }} properties */
function Screen({ route }) {
  const [view, setView] = useState(/** @type {{ draw: (() => import("./html.js").Children) | null, error: unknown }} */ ({ draw: null, error: null }));
  useEffect(() => {
    let current = true;
    route.load().then((draw) => { if (current) setView({ draw, error: null }); }, (error) => { if (current) setView({ draw: null, error }); });
    return () => { current = false; };
  }, [route.key]);
  useEffect(() => {
    // A reader of the screen hears where they are; the pointer keeps its place.
    if (view.draw && document.activeElement === document.body) /** @type {HTMLElement | null} */ (document.querySelector("main h1"))?.focus({ preventScroll: true });
  }, [view.draw]);
  if (view.error) return div({ class: "page" }, div({ class: "notice" }, strong(null, t("updated")), h(Button, { small: true, onClick: () => location.reload() }, t("updated.reload"))), h(Problem, { error: view.error }));
  return view.draw ? /** @type {import("./html.js").View} */ (view.draw()) : div({ class: "page" }, h(Skeleton, { rows: 10 }));
}

/** A bar after 150 ms; "still busy" after 8 s. */
function Progress() {
  const [late, setLate] = useState(0);
  const on = busy.value > 0;
  useEffect(() => {
    if (!on) return setLate(0);
    const soon = setTimeout(() => setLate(1), 150);
    const long = setTimeout(() => setLate(2), 8000);
    return () => { clearTimeout(soon); clearTimeout(long); };
  }, [on]);
  return div({ class: late ? "progress on" : "progress", role: "status" }, late === 2 ? span(null, t("busy")) : null);
}

function applyTheme() {
  document.documentElement.dataset.theme = chosen("theme", "auto");
  document.documentElement.dataset.density = chosen("density", "normal");
}
