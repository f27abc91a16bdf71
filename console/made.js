// A record whose save had no answer, because the page was reloaded: a form that was changed since changes that record, and makes
// no second one.
import { ApiError, patch, post } from "./api.js";
import { dropDraft, keepNow, readDraft } from "./drafts.js";
import { itemPath } from "./schema.js";

/** Makes a record of what a form says. Until the draft is dropped, the same form changes this record.
 * @param {import("./schema.js").Table} table @param {Record<string, any>} body @param {string | ((body: unknown) => string)} key @param {string} draft The name of the form's draft.
 * @returns {Promise<import("./api.js").Answer>} */
export async function make(table, body, key, draft) {
  const [name, text] = [`sent ${draft}`, JSON.stringify(body)];
  const before = readDraft(name)?.value;
  const last = before?.last ?? before?.text;
  if (last && last !== text && "patch" in table.verbs) {
    const made = await post(table.path, JSON.parse(before.text), { key: before.key, keep: true }).catch(refused);
    if (!made) dropDraft(name);
    else {
      // What was emptied since is not in a new form.
      const emptied = Object.fromEntries(Object.keys(JSON.parse(last)).filter((field) => !(field in body)).map((field) => [field, null]));
      // Some fields are for a new record only, such as the totals of a document.
      const changes = Object.fromEntries(Object.entries({ ...emptied, ...body }).filter(([name]) => table.fields.some((field) => field.name === name && field.patch)));
      keepNow(name, { ...before, answered: false });
      const answer = await patch(itemPath(table, made.data.id), changes, { etag: before.etag ?? made.etag }).catch((error) => { refused(error); keepNow(name, before); throw error; });
      keepNow(name, { ...before, last: text, etag: answer.etag, answered: true });
      // A secret is only in the first response.
      return { ...answer, data: { ...made.data, ...answer.data } };
    }
  }
  const own = last === text ? before.key : typeof key === "function" ? key(body) : key;
  const sent = { ...(last === text ? before : null), text: last === text ? before.text : text, key: own };
  keepNow(name, { ...sent, answered: false });
  const answer = await post(table.path, JSON.parse(sent.text), { key: own }).catch((error) => { refused(error); dropDraft(name); throw error; });
  // More may have been typed meanwhile.
  keepNow(name, { ...sent, answered: true });
  return answer;
}

/** Changes a record to what a form says. Until the answer comes, nobody knows whether it is saved.
 * @param {import("./schema.js").Table} table @param {string} id @param {Record<string, any>} body @param {string} etag @param {string} draft */
export async function change(table, id, body, etag, draft) {
  keepNow(`sent ${draft}`, { answered: false });
  const answer = await patch(itemPath(table, id), body, { etag }).catch((error) => { refused(error); dropDraft(`sent ${draft}`); throw error; });
  dropDraft(`sent ${draft}`);
  return answer;
}

/** The server said no, so nothing was made. Without an answer it may have been.
 * @param {unknown} error */
function refused(error) {
  if (error instanceof ApiError && error.status >= 400 && error.status < 500) return null;
  throw error;
}
