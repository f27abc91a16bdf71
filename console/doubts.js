// What the server doubts of a flow: fields that the event does not have, values that they never have.

/** @typedef {{ field: string, message: string }} Doubt */

/** The doubts of the flow that was saved or switched on last, for its editor. @type {{ id: string, all: Doubt[] }} */
let last = { id: "", all: [] };

/** What the server warns of: at a field of the flow, or in general.
 * @param {string[]} [warnings] */
function parted(warnings = []) {
  const all = warnings.map((one) => /^((?:steps|conditions)\[\d+\][\w.[\]]*): (.+)$/s.exec(one));
  const own = all.filter((one) => one !== null).map(([, field = "", message = ""]) => ({ field, message }));
  return { own, others: warnings.filter((_, place) => !all[place]) };
}

/** Keeps the doubts in a response about a flow. Returns them, how many fields they are about, and the response without them.
 * @param {string} id @param {import("./api.js").Answer} answer */
export function keepDoubts(id, answer) {
  const { own, others } = parted(answer.meta.warnings);
  last = { id, all: own };
  return { own, fields: new Set(own.map((one) => one.field)).size, rest: { ...answer, meta: { ...answer.meta, warnings: others } } };
}

/** The doubts of a flow, if they were the last.
 * @param {string} [id] */
export const keptDoubts = (id) => (last.id === id ? last.all : []);
