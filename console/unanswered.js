// A request whose answer never came, because the page was reloaded or the connection broke: the same one again has the same
// key, so that it takes effect once.

const NAME = "unanswered";
const KEPT = 10 * 60 * 1000;

/** @typedef {Record<string, { key: string, at: number }>} Requests */

/** @returns {Requests} */
function read() {
  try {
    const all = /** @type {Requests} */ (JSON.parse(sessionStorage.getItem(NAME) ?? "{}"));
    return Object.fromEntries(Object.entries(all).filter(([, one]) => Date.now() - one.at < KEPT));
  } catch {
    return {};
  }
}

/** Storage may be full or switched off.
 * @param {Requests} all */
function write(all) {
  try {
    sessionStorage.setItem(NAME, JSON.stringify(all));
  } catch {}
}

/** Requests are told apart by a number: what they say is nobody's business after the page is left.
 * @param {string} request */
function numberOf(request) {
  let [one, other] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < request.length; at++) {
    const code = request.charCodeAt(at);
    one = Math.imul(one ^ code, 2654435761);
    other = Math.imul(other ^ code, 1597334677);
  }
  return `${one >>> 0} ${other >>> 0} ${request.length}`;
}

/** Returns the key of a request that is sent now: that of the same one without an answer, or its own.
 * @param {string} request @param {string} own */
export function keyFor(request, own) {
  const [all, number] = [read(), numberOf(request)];
  const key = all[number]?.key ?? own;
  write({ ...all, [number]: { key, at: Date.now() } });
  return key;
}

/** @param {string} request */
export function answered(request) {
  const number = numberOf(request);
  write(Object.fromEntries(Object.entries(read()).filter(([name]) => name !== number)));
}
