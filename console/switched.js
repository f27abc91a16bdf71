// This page is of a user who is not signed in any more: another tab of the browser switched accounts, or somebody else signed in
// there. What is typed here stays until its person decides where to go on.
import { get, post } from "./api.js";
import { Dialog, openDialog } from "./dialog.js";
import { a, h, p, strong } from "./html.js";
import { Button } from "./parts.js";
import { me } from "./schema.js";
import { loadRest, t } from "./words.js";

/** @typedef {{ user: import("./api.js").Item, account: import("./api.js").Item, accounts?: import("./api.js").Item[] }} Caller */

/** @type {Promise<boolean> | null} */
let asking = null;
let declined = false;

/** Returns whether the user of this page is signed in again. Requests that wait at the same time share the question.
 * @param {boolean} quiet Whether nobody waits for the request: a refusal to decide is not asked about again then.
 * @returns {Promise<boolean>} */
export function askUser(quiet) {
  if (quiet && declined) return Promise.resolve(false);
  asking ??= ask().then((back) => { declined = !back; return back; }).finally(() => { asking = null; });
  return asking;
}

/** @returns {Promise<boolean>} */
async function ask() {
  const [answer] = await Promise.all([get("/v1/me", { anybody: true, quiet: true }), loadRest()]);
  const now = /** @type {Caller} */ (answer.data);
  // Somebody switched back meanwhile.
  if (now.user.id === me.value.user.id) return true;
  return new Promise((resolve) => openDialog(({ close }) => h(Ask, { now, answer: (back) => { close(); resolve(back); } })));
}

/** @param {{ now: Caller, answer: (back: boolean) => void }} properties */
function Ask({ now, answer }) {
  const mine = me.value;
  const account = mine.account.name ?? "";
  const same = now.user.email === mine.user.email && (now.accounts ?? []).some((one) => one.id === mine.account.id);
  const reload = () => { location.assign("/"); };
  const back = async () => { await post("/account", { account_id: mine.account.id }, { keep: true, anybody: true }); answer(true); };
  return same
    ? h(Dialog, { title: t("switched.title"), action: t("switched.back", { account }), close: () => answer(false), run: back, other: h(Button, { onClick: reload }, t("switched.go_on", { account: now.account.name ?? "" })) },
      p(null, t("switched.text", { account, now: now.account.name ?? "" })), p(null, t("switched.unsaved")))
    : h(Dialog, { title: t("switched.other_title"), action: t("switched.go_on", { account: now.account.name ?? "" }), close: () => answer(false), run: async () => { reload(); return false; } },
      p(null, t("switched.other_text", { account, name: mine.user.name ?? "", now: now.user.name ?? "" })), p(null, strong(null, t("switched.unsaved"))),
      p({ class: "help" }, a({ href: "/sign-in", target: "_blank" }, t("switched.sign_in", { name: mine.user.name ?? "" }))));
}
