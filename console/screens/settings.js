// Settings: a page of subjects, and a page for each subject that is not a list.
import { useSignal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { ApiError, get, patch, useLoad } from "../api.js";
import { dropDraft, keepDraft, readDraft, saveTyped, useDraft } from "../drafts.js";
import { ChoiceBox, FieldRow, TextBox } from "../field.js";
import { changes, errorsByField } from "../form.js";
import { size } from "../format.js";
import { a, div, form, h, h2, label, p, span, strong } from "../html.js";
import { Button, Card, Facts, Head, Icon, Problem, Restored, Skeleton, say } from "../parts.js";
import { can, fieldOf, may, me, tables } from "../schema.js";
import { fieldName, t, tableName, word } from "../words.js";

/** @typedef {import("../api.js").Item} Item */

/** @type {[string, string[]][]} */
const SUBJECTS = [
  ["business", ["corporate_identities", "custom_fields"]],
  ["money", ["tax_rates", "payment_terms"]],
  ["sales", ["pipelines", "phases", "deal_sources"]],
  ["support", ["ticket_statuses", "ticket_channels", "email_domains", "mail_templates"]],
  ["access", ["users", "keys", "webhook_endpoints"]],
];
/** Subjects that are no table: the key of their words, the address, the icon, the scope. @type {Record<string, [string, string, string, string][]>} */
const PAGES = {
  business: [["account", "/settings/account", "home", "settings.read"], ["timers", "/settings/timers", "hours", "settings.read"], ["imports", "/imports", "upload", "files.read"], ["exports", "/exports", "download", "files.read"]],
  money: [["documents", "/settings/documents", "quotes", "settings.read"], ["payments", "/settings/payments", "pay", "settings.read"]],
  support: [["sending", "/settings/sending", "send", "settings.read"], ["mails", "/settings/mail", "mail", "invoices.read"]],
  access: [["security", "/settings/security", "settings", "settings.read"], ["audit", "/settings/audit", "hours", "audit.read"]],
};
/** @type {Record<string, string>} */
const ICONS = { corporate_identities: "edit", tax_rates: "invoices", payment_terms: "hours", custom_fields: "columns", pipelines: "deals", phases: "columns", deal_sources: "link", ticket_statuses: "tickets", ticket_channels: "mail", email_domains: "send", mail_templates: "edit", users: "clients", keys: "link", webhook_endpoints: "flows" };

/** The fields of each page. @type {Record<string, string[]>} */
const SECTIONS = {
  documents: ["language", "payment_term", "quote_expiration_days", "default_vat_code", "strict_final", "subscription_generation"],
  sending: ["mail_hours_from", "mail_hours_until", "mail_days"],
  payments: ["provider", "mollie_key", "online_payments", "verification_amount", "creditor_id"],
  security: ["two_factor"],
  timers: ["document_draft_days", "quote_silent_days", "subscription_expiring_days", "deal_stalled_days", "deal_phase_idle_days", "deal_no_followup_days", "ticket_stale_days", "mail_unanswered_days", "customer_inactive_days", "customer_no_followup_days", "runs_kept_days"],
};

/** Settings that belong to one way of collecting. @type {Record<string, string[]>} */
const OF_PROVIDER = { mollie_key: ["mollie"], online_payments: ["mollie", "sandbox"], verification_amount: ["mollie", "sandbox"], creditor_id: ["manual"] };

/** Settings that the browser does not keep. */
const SECRET = new Set(["mollie_key"]);

export function Settings() {
  return div({ class: "page settings" }, h(Head, { title: t("menu.settings") }),
    SUBJECTS.map(([subject, keys]) => {
      const own = keys.map((key) => tables[key]).filter((table) => table !== undefined).filter((table) => can(table, "list")).map((table) => ({ key: table.key, href: table.address, icon: ICONS[table.key] ?? "settings", name: tableName(table.key) }));
      const pages = (PAGES[subject] ?? []).filter(([, , , scope]) => may(scope)).map(([key, href, icon]) => ({ key, href, icon, name: pageName(key) }));
      return own.length + pages.length === 0 ? null : div({ key: subject, class: "subjects" }, h2(null, word([`settings.${subject}`], subject)), div({ class: "subject-grid" }, [...own, ...pages].map((one) =>
        a({ key: one.key, class: "subject", href: one.href }, span({ class: "attention-icon" }, h(Icon, { name: one.icon })), span(null, strong(null, one.name), span({ class: "soft" }, word([`settings.${one.key}`, `settings.page.${one.key}`], "")))))));
    }));
}

/** @param {string} key */
export const pageName = (key) => word([`settings.section.${key}`, `${key}.title`], tableName(key));

/** One subject.
 * @param {{ name: string }} properties */
export function SettingsPage({ name }) {
  const loaded = useLoad(may("settings.read") ? "/v1/settings" : null);
  return div({ class: "page narrow settings" }, h(Head, { title: pageName(name), over: a({ href: "/settings" }, t("menu.settings")) }),
    word([`settings.page.${name}`], "") ? p({ class: "soft settings-about" }, word([`settings.page.${name}`], "")) : null,
    name === "account" ? h(AccountPage, null)
      : loaded.error && !loaded.answer ? h(Problem, { error: loaded.error, retry: loaded.reload }) : !loaded.answer ? h(Skeleton, { rows: 6 })
      : h(Section, { name, fields: SECTIONS[name] ?? [], item: loaded.answer.data, etag: loaded.answer.etag }));
}

/** The name of the account, and what it uses. */
function AccountPage() {
  const usage = useLoad(may("settings.read") ? "/v1/settings/usage" : null).answer?.data;
  return [may("settings.write") ? h(AccountName, { key: "name" }) : null,
    usage ? h(Card, { key: "usage", title: t("settings.usage") }, h(Facts, { facts: [[tableName("files"), `${usage.files} · ${size(usage.file_bytes)}`], [t("settings.mails_today"), String(usage.mails_today)]] })) : null];
}

function AccountName() {
  const draft = useDraft("/settings/account", me.value.account.name ?? "");
  const name = draft.value;
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      await patch("/v1/account", { name: name.trim() });
      me.value = (await get("/v1/me")).data;
      draft.saved(name);
      say(t("saved"));
    } catch (problem) { setError(problem); } finally { setBusy(false); }
  };
  return form({ id: "account", onSubmit: (event) => { event.preventDefault(); void save(); } }, h(Card, null, draft.restored ? h(Restored, { discard: draft.drop }) : null, error ? h(Problem, { error }) : null,
    div({ class: "fields" }, div({ class: "field" }, label({ for: "account-name" }, t("settings.account_name")), h(TextBox, { id: "account-name", value: name, length: 255, describedBy: "account-help", onChange: draft.set }), p({ class: "help", id: "account-help" }, t("settings.account_help")))),
    div({ class: "card-foot" }, h(Button, { type: "submit", primary: true, busy, disabled: !name.trim() || name.trim() === me.value.account.name }, t("save")))));
}

/** The tax rate of new rows: one of the account.
 * @param {{ value: string, error?: string, disabled: boolean, onChange: (value: string) => void }} properties */
function VatCode({ value, error, disabled, onChange }) {
  const rates = /** @type {Item[]} */ (useLoad("/v1/tax-rates").answer?.data ?? []);
  return div({ class: "field" }, label({ for: "s-default_vat_code" }, fieldName("settings", "default_vat_code")),
    h(ChoiceBox, { id: "s-default_vat_code", value, disabled, invalid: Boolean(error), onChange, options: [["", t("settings.no_vat")], ...rates.filter((rate) => rate.context !== "purchase").map((rate) => /** @type {[string, string]} */ ([rate.code, `${rate.label} (${rate.code})`]))] }),
    error ? p({ class: "wrong" }, error) : null);
}

/** @param {{ name: string, fields: string[], item: Item, etag: string }} properties */
function Section({ name, fields, item, etag }) {
  const table = tables.settings;
  const draftName = `/settings/${name}`;
  const kept = useMemo(() => readDraft(draftName), []);
  const edited = useSignal(/** @type {Item} */ (kept?.value ?? {}));
  const restored = useSignal(kept !== null);
  /** @param {string} name @param {any} value */
  const set = (name, value) => {
    edited.value = { ...edited.value, [name]: value };
    if (!SECRET.has(name)) keepDraft(draftName, () => Object.fromEntries(Object.entries(edited.value).filter(([one]) => !SECRET.has(one))));
  };
  const discard = () => { edited.value = {}; restored.value = false; dropDraft(draftName); };
  const provider = edited.value.provider ?? item.provider;
  const own = fields.filter((one) => !(one in OF_PROVIDER) || OF_PROVIDER[one]?.includes(provider)).map((one) => (table ? fieldOf(table, one) : undefined)).filter((field) => field !== undefined).filter((field) => field.patch)
    // The sandbox is for test accounts and for servers that allow it.
    .map((field) => (field.name === "provider" && item.provider !== "sandbox" && !item.demo ? { ...field, choices: (field.choices ?? []).filter((choice) => choice !== "sandbox") } : field));
  const error = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const values = { ...item, ...edited.value };
  const body = changes(own, item, values);
  const disabled = !table || !can(table, "patch");
  const errors = error.value instanceof ApiError ? errorsByField(error.value) : {};
  const save = async () => {
    busy.value = true;
    error.value = null;
    try {
      const sent = edited.value;
      await saveTyped({ draft: draftName, typed: () => edited.value, send: () => patch("/v1/settings", body, { etag }) });
      restored.value = false;
      if (edited.value === sent) edited.value = {};
      say(t("saved"));
    } catch (problem) { error.value = problem; } finally { busy.value = false; }
  };
  if (own.length === 0) return null;
  return form({ id: name, onSubmit: (event) => { event.preventDefault(); void save(); } }, h(Card, null,
    restored.value && Object.keys(body).length > 0 ? h(Restored, { discard }) : null, error.value ? h(Problem, { error: error.value }) : null,
    div({ class: name === "timers" ? "fields three" : "fields" }, own.map((field) => field.name === "default_vat_code" ? h(VatCode, { key: field.name, value: values[field.name] ?? "", error: errors[field.name], disabled, onChange: (value) => set(field.name, value) }) : h(FieldRow, { key: field.name, table: "settings", field, value: values[field.name] ?? "", disabled, error: errors[field.name], prefix: "s", onChange: (value) => set(field.name, value) }))),
    name === "payments" && provider === "manual" && tables.batches ? p({ class: "help" }, a({ href: tables.batches.address }, tableName("batches"))) : null,
    disabled ? null : div({ class: "card-foot" }, h(Button, { type: "submit", primary: true, busy: busy.value, disabled: Object.keys(body).length === 0 }, t("save")))));
}
