// Invoicing the approved hours of a project: a draft invoice with a row for each activity and person.
import { useMemo, useState } from "preact/hooks";
import { formKey, get, post, useLoad } from "../api.js";
import { Dialog } from "../dialog.js";
import { DayBox } from "../field.js";
import { hours, nearDay, plusDays, today } from "../format.js";
import { div, h, label, li, p, span, strong, ul } from "../html.js";
import { Skeleton } from "../parts.js";
import { go } from "../router.js";
import { salesRates } from "../rows.js";
import { tables } from "../schema.js";
import { LinkName, linked } from "../value.js";
import { t } from "../words.js";

/** @typedef {import("../api.js").Item} Item */
/** @typedef {{ key: string, activity: string, user: string, minutes: number }} Group */

const MAX_PAGES = 10;

/** @param {{ project: Item, close: () => void }} properties */
export function BillHours({ project, close }) {
  const [from, setFrom] = useState(monthBefore());
  const [to, setTo] = useState(today());
  const path = `/v1/projects/${project.id}/hours?status=approved&from=${from}&to=${to}&per_page=100&sort=date&order=asc`;
  const loaded = useLoad(from && to ? path : null).answer;
  const rates = useLoad("/v1/tax-rates").answer;
  const groups = grouped(loaded?.data ?? []);
  const key = useMemo(formKey, []);
  const pages = Math.min(MAX_PAGES, loaded?.meta.pages ?? 1);
  const run = async () => {
    const all = /** @type {Item[]} */ ([...(loaded?.data ?? [])]);
    for (let page = 2; page <= pages; page++) all.push(...(await get(`${path}&page=${page}`)).data);
    const vat = salesRates(rates?.data ?? [])[0]?.code;
    // Nobody has a rate: the price is what is left to fill in.
    const rows = grouped(all).map((group) => ({ name: [group.activity || t("project.work"), linked("users", group.user).value?.name].filter(Boolean).join(", "), quantity: (group.minutes / 60).toFixed(2), unit: t("bill.unit"), unit_price: "0", ...(vat ? { vat_code: vat } : {}) }));
    const title = t("bill.invoice", { project: project.name, from: nearDay(from), to: nearDay(to) });
    const made = await post("/v1/invoices", { title, project_id: project.id, ...(project.client_id ? { client_id: project.client_id } : {}), rows }, { key });
    go(`${tables.invoices?.address}/${made.data.id}`);
    focusPrice(MAX_LOOKS);
  };
  return h(Dialog, { title: t("bill.title"), action: t("bill.make"), close, run, disabled: groups.length === 0 || !rates },
    p(null, t("bill.text")),
    div({ class: "fields" }, div({ class: "field" }, label({ for: "bill-from" }, t("bill.from")), h(DayBox, { id: "bill-from", value: from, onChange: setFrom })), div({ class: "field" }, label({ for: "bill-to" }, t("bill.to")), h(DayBox, { id: "bill-to", value: to, onChange: setTo }))),
    !loaded ? h(Skeleton, { rows: 2 }) : groups.length === 0 ? p({ class: "soft" }, t("bill.none"))
      : ul({ class: "lines" }, groups.map((group) => li({ key: group.key }, span(null, group.activity || t("project.work"), group.user ? [", ", h(LinkName, { key: "who", table: "users", id: group.user, plain: true })] : null), strong({ class: "amount" }, hours(group.minutes))))),
    pages > 1 ? p({ class: "soft" }, t("bill.more")) : null);
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

/** The first day of the month before. */
const monthBefore = () => `${plusDays(`${today().slice(0, 7)}-01`, -1).slice(0, 7)}-01`;

const MAX_LOOKS = 40;
const PAUSE = 100;

/** The first price of the new invoice gets the focus, as soon as it is there.
 * @param {number} looks */
function focusPrice(looks) {
  const box = /** @type {HTMLElement | null} */ (document.querySelector(".editor .cell-price input"));
  if (box && !document.querySelector("dialog")) box.focus();
  else if (looks > 0) setTimeout(() => focusPrice(looks - 1), PAUSE);
}
