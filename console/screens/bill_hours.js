// Invoicing the approved hours of a project: the server makes a draft invoice with a row for each activity and person, of the
// hours that no invoice has yet.
import { useMemo } from "preact/hooks";
import { formKey, post, useLoad } from "../api.js";
import { Dialog, useTyped } from "../dialog.js";
import { DayBox, NumberBox } from "../field.js";
import { hours, today } from "../format.js";
import { div, h, label, li, p, span, strong, ul } from "../html.js";
import { Skeleton, savedHere } from "../parts.js";
import { salesRates } from "../rows.js";
import { tables } from "../schema.js";
import { LinkName } from "../value.js";
import { t } from "../words.js";

/** @typedef {import("../api.js").Item} Item */
/** @typedef {{ key: string, activity: string, user: string, minutes: number }} Group */

/** @param {{ project: Item, close: () => void }} properties */
export function BillHours({ project, close }) {
  // From the first hours that are left to invoice.
  const first = useLoad(`/v1/projects/${project.id}/hours?status=approved&invoiced=false&per_page=1&sort=date&order=asc`).answer;
  const draft = useTyped(`bill ${project.id}`, { from: /** @type {string | null} */ (null), to: today(), price: "" });
  const { to, price } = draft.values;
  const from = draft.values.from ?? (first ? first.data[0]?.date ?? today() : "");
  const list = `/v1/projects/${project.id}/hours?status=approved&from=${from}&to=${to}&invoiced=`;
  const loaded = useLoad(from && to ? `${list}false&per_page=100&sort=date&order=asc` : null).answer;
  const billed = useLoad(from && to ? `${list}true&per_page=1&sums=hours` : null).answer?.meta.sums?.hours ?? 0;
  const rates = useLoad("/v1/tax-rates").answer;
  const groups = grouped(loaded?.data ?? []);
  const key = useMemo(formKey, []);
  const run = async () => {
    const vat = salesRates(rates?.data ?? [])[0]?.code;
    const here = savedHere();
    const made = await post(`/v1/projects/${project.id}/invoice`, { from, to, ...(price ? { unit_price: price } : {}), ...(vat ? { vat_code: vat } : {}) }, { key });
    if (here.open(`${tables.invoices?.address}/${made.data.id}`, made, { replace: false, quiet: true }) && !price) focusPrice(MAX_LOOKS);
  };
  return h(Dialog, { title: t("bill.title"), action: t("bill.make"), close, run, draft, disabled: groups.length === 0 || !rates || price.startsWith("?") },
    p(null, t("bill.text")),
    div({ class: "fields" }, div({ class: "field" }, label({ for: "bill-from" }, t("bill.from")), h(DayBox, { id: "bill-from", value: from, onChange: (value) => draft.set({ from: value }) })), div({ class: "field" }, label({ for: "bill-to" }, t("bill.to")), h(DayBox, { id: "bill-to", value: to, onChange: (value) => draft.set({ to: value }) })),
      div({ class: "field" }, label({ for: "bill-price" }, t("bill.price")), h(NumberBox, { id: "bill-price", value: price, decimals: 2, mark: "€", onChange: (value) => draft.set({ price: value }) }))),
    !loaded ? h(Skeleton, { rows: 2 }) : groups.length === 0 ? p({ class: "soft" }, t("bill.none"))
      : ul({ class: "lines" }, groups.map((group) => li({ key: group.key }, span(null, group.activity || t("project.work"), group.user ? [", ", h(LinkName, { key: "who", table: "users", id: group.user, plain: true })] : null), strong({ class: "amount" }, hours(group.minutes))))),
    (loaded?.meta.pages ?? 1) > 1 ? p({ class: "soft" }, t("bill.more")) : null,
    billed > 0 ? p({ class: "soft" }, t("bill.billed", { hours: hours(Math.round(billed * 60)) })) : null);
}

/** @param {Item[]} entries @returns {Group[]} */
function grouped(entries) {
  /** @type {Map<string, Group>} */
  const groups = new Map();
  for (const entry of entries) {
    const [activity, user] = [entry.activity_name ?? "", entry.meta?.user_id ?? ""];
    const key = `${activity} ${user}`;
    groups.set(key, { key, activity, user, minutes: (groups.get(key)?.minutes ?? 0) + entry.minutes });
  }
  return [...groups.values()];
}

const MAX_LOOKS = 40;
const PAUSE = 100;

/** The first price of the new invoice gets the focus, as soon as it is there.
 * @param {number} looks */
function focusPrice(looks) {
  const box = /** @type {HTMLElement | null} */ (document.querySelector(".editor .cell-price input"));
  if (box && !document.querySelector("dialog")) box.focus();
  else if (looks > 0) setTimeout(() => focusPrice(looks - 1), PAUSE);
}
