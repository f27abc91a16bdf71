// The account's own details: its default corporate identity.
import { useLoad } from "./api.js";
import { may } from "./schema.js";

/** @param {boolean} [wanted] @returns {import("./api.js").Item | undefined} */
export function useIdentity(wanted = true) {
  const all = /** @type {import("./api.js").Item[]} */ (useLoad(wanted && may("settings.read") ? "/v1/corporate-identities" : null).answer?.data ?? []);
  const id = (all.find((one) => one.is_default) ?? all[0])?.id;
  const own = useLoad(id ? `/v1/corporate-identities/${id}` : null).answer?.data;
  return own ? { ...own.meta, ...own } : undefined;
}
