// A deal that is won or lost, on the board and on its page. It can be undone while nobody has changed the deal since.
import { ApiError, post } from "./api.js";
import { say, sayError } from "./parts.js";
import { t } from "./words.js";

/** @typedef {import("./api.js").Item} Item */

/** @param {Item} deal @param {"win" | "lose"} how @param {() => void} [undone] @returns {Promise<boolean>} Whether it is done. */
export async function endDeal(deal, how, undone) {
  try {
    const { etag } = await post(`/v1/deals/${deal.id}/${how}`, undefined);
    const undo = () => void post(`/v1/deals/${deal.id}/move`, { status: "open" }, { etag }).then(undone, (error) => sayLate(deal, error));
    say(t(how === "win" ? "board.won" : "board.lost", { title: deal.title }), { undo });
    return true;
  } catch (error) {
    sayError(error);
    return false;
  }
}

/** Says why something is not undone.
 * @param {Item} deal @param {unknown} error */
export const sayLate = (deal, error) => (error instanceof ApiError && error.status === 412 ? say(t("board.changed", { title: deal.title }), { error: true }) : sayError(error));
