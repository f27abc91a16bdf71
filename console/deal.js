// A deal that is won or lost, on the board and on its page. It can be undone while nobody has changed the deal since.
import { useMemo } from "preact/hooks";
import { ApiError, formKey, post } from "./api.js";
import { Dialog, openDialog, useTyped } from "./dialog.js";
import { TextBox } from "./field.js";
import { div, h, label } from "./html.js";
import { say, sayError } from "./parts.js";
import { can, tables } from "./schema.js";
import { t } from "./words.js";

/** @typedef {import("./api.js").Item} Item */

/** @param {Item} deal @param {"win" | "lose"} how @param {() => void} [undone] @returns {Promise<boolean>} Whether it is done. */
export async function endDeal(deal, how, undone) {
  try {
    const { etag } = await post(`/v1/deals/${deal.id}/${how}`, undefined);
    const undo = () => void post(`/v1/deals/${deal.id}/move`, { status: "open" }, { etag }).then(undone, (error) => sayLate(deal, error));
    const asks = how === "lose" && mayAddReason();
    say(t(how === "win" ? "board.won" : "board.lost", { title: deal.title }), { undo, ask: asks ? { label: t("board.add_reason"), run: () => addReason(deal) } : undefined });
    return true;
  } catch (error) {
    sayError(error);
    return false;
  }
}

export const mayAddReason = () => tables.notes !== undefined && can(tables.notes, "create");
/** @param {Item} deal */
export const addReason = (deal) => openDialog(({ close }) => h(Reason, { deal, close }));

/** Says why something is not undone.
 * @param {Item} deal @param {unknown} error */
export const sayLate = (deal, error) => (error instanceof ApiError && error.status === 412 ? say(t("board.changed", { title: deal.title }), { error: true }) : sayError(error));

/** Why a deal was lost, as a note about it.
 * @param {{ deal: Item, close: () => void }} properties */
function Reason({ deal, close }) {
  const draft = useTyped(`lost ${deal.id}`, { reason: "" });
  const { reason } = draft.values;
  const key = useMemo(formKey, []);
  const run = async () => {
    await post("/v1/notes", { deal_id: deal.id, body: t("board.lost_because", { reason: reason.trim() }) }, { key });
    say(t("saved"));
  };
  return h(Dialog, { title: t("board.lost", { title: deal.title }), action: t("save"), close, run, draft, disabled: !reason.trim() },
    div({ class: "field" }, label({ for: "lost-reason" }, t("field.reason")), h(TextBox, { id: "lost-reason", value: reason, long: true, onChange: (value) => draft.set({ reason: value }) })));
}
