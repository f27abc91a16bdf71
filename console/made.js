// A record whose save had no answer, because the page was reloaded: a form that was changed since changes that record, and makes
// no second one.
import { ApiError, patch, post } from "./api.js";
import { dropDraft, keepNow, readDraft } from "./drafts.js";
import { itemPath } from "./schema.js";

/** Makes a record of what a form says.
 * @param {import("./schema.js").Table} table @param {Record<string, any>} body @param {string | ((body: unknown) => string)} key @param {string} draft The name of the form's draft, which is dropped with it.
 * @returns {Promise<import("./api.js").Answer>} */
export async function make(table, body, key, draft) {
  const [name, text] = [`sent ${draft}`, JSON.stringify(body)];
  const before = readDraft(name)?.value;
  if (before && before.text !== text && "patch" in table.verbs) {
    const sent = JSON.parse(before.text);
    const made = await post(table.path, sent, { key: before.key, keep: true }).catch(refused);
    dropDraft(name);
    if (made) {
      // What was emptied since is not in a new form.
      const emptied = Object.fromEntries(Object.keys(sent).filter((field) => !(field in body)).map((field) => [field, null]));
      const answer = await patch(itemPath(table, made.data.id), { ...emptied, ...body }, { etag: made.etag });
      // A secret is only in the first response.
      return { ...answer, data: { ...made.data, ...answer.data } };
    }
  }
  const own = before?.text === text ? before.key : typeof key === "function" ? key(body) : key;
  keepNow(name, { text, key: own });
  const answer = await post(table.path, body, { key: own }).catch((error) => { refused(error); dropDraft(name); throw error; });
  dropDraft(name);
  return answer;
}

/** Changes a record to what a form says. Until the answer comes, nobody knows whether it is saved.
 * @param {import("./schema.js").Table} table @param {string} id @param {Record<string, any>} body @param {string} etag @param {string} draft */
export function change(table, id, body, etag, draft) {
  keepNow(`sent ${draft}`, {});
  return patch(itemPath(table, id), body, { etag }).catch((error) => { refused(error); dropDraft(`sent ${draft}`); throw error; });
}

/** The server said no, so nothing was made. Without an answer it may have been.
 * @param {unknown} error */
function refused(error) {
  if (error instanceof ApiError && error.status >= 400 && error.status < 500) return null;
  throw error;
}
