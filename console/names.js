// Names of linked records: what a screen needs is collected and asked with one request per kind.
import { signal } from "@preact/signals";
import { get } from "./api.js";
import { a, h, span } from "./html.js";
import { can, tables, titleOf } from "./schema.js";

/** @typedef {import("./api.js").Item} Item */

/** @type {Map<string, import("@preact/signals").Signal<Item | null | undefined>>} */
const known = new Map();
/** @type {Map<string, Set<string>>} */
let wanted = new Map();
const MAX_IDS = 100;

/** A signal of a linked record: undefined until it is there, null if there is none.
 * @param {string} table @param {string} id */
export function linked(table, id) {
  const key = `${table} ${id}`;
  let found = known.get(key);
  if (!found) {
    found = signal(/** @type {Item | null | undefined} */ (undefined));
    known.set(key, found);
    if (wanted.size === 0) queueMicrotask(ask);
    wanted.set(table, (wanted.get(table) ?? new Set()).add(id));
  }
  return found;
}

/** @param {string} table @param {Item} item */
export function learn(table, item) {
  const found = known.get(`${table} ${item.id}`);
  if (found) found.value = item;
  else known.set(`${table} ${item.id}`, signal(/** @type {Item | null | undefined} */ (item)));
}

function ask() {
  const asked = wanted;
  wanted = new Map();
  for (const [name, ids] of asked) {
    const table = tables[name];
    const all = [...ids];
    for (let start = 0; start < all.length; start += MAX_IDS) {
      const some = all.slice(start, start + MAX_IDS);
      const path = table && can(table, "list") ? `${table.path}?id=${some.join(",")}&per_page=${MAX_IDS}` : "";
      const answer = path ? get(path, { quiet: true }).then((found) => /** @type {Item[]} */ (found.data)) : Promise.resolve([]);
      answer.catch(() => /** @type {Item[]} */ ([])).then((items) => {
        const byId = new Map(items.map((item) => [item.id, item]));
        for (const id of some) linked(name, id).value = byId.get(id) ?? null;
      });
    }
  }
}

/** The name of a linked record, as a link.
 * @param {{ table: string, id: string | null | undefined, plain?: boolean }} properties */
export function LinkName({ table, id, plain }) {
  if (!id) return null;
  const item = linked(table, id).value;
  const kind = tables[table];
  if (item === undefined) return span({ class: "loading-name" }, "\u00a0");
  if (!item || !kind) return span({ class: "soft" }, "–");
  const name = titleOf(kind, item) || "–";
  return plain ? span(null, name) : a({ href: `${kind.address}/${id}` }, name);
}

/** @param {{ table: string, id: string }} properties */
export const PlainName = (properties) => h(LinkName, { ...properties, plain: true });
