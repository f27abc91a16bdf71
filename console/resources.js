// Taste: which columns a list shows, how fields are grouped, which tone a status has. Nothing that the registry knows.

/** @typedef {{ columns?: string[], card?: { title: string, sub?: string[], end?: string, status?: string }, groups?: [string, string[]][],
 *   icon?: string, status?: string, tabs?: [string, string][], hidden?: string[], tail?: string, amount?: string, starts?: Record<string, unknown>, roomy?: string[], counted?: string[] }} Taste
 * `tabs`: a word and the query of a tab. `hidden`: fields that a hand-made part of the screen shows. `amount`: what a selection adds up.
 * `starts`: what a new record begins with. `roomy`: the column that laptops leave out, and the one that tablets leave out too. `counted`: tabs with a number. */

const CONTACT = [
  ["who", ["type", "company_name", "firstname", "lastname", "email", "phone", "website", "mail_salutation"]],
  ["address", ["address", "zipcode", "city", "country"]],
  ["billing", ["payment_term", "quote_expiration_days", "email_invoices", "email_reminders", "company_registration_number", "vat_number", "default_revenue_account"]],
  ["bank", ["iban", "bank_account_name", "bic"]],
];
const DOCUMENT = { status: "payment_status", amount: "total_incl_vat", card: { title: "title", sub: ["number", "client_id"], end: "total_incl_vat", status: "payment_status" } };

/** @type {Record<string, Taste>} */
const TASTE = {
  invoices: { ...DOCUMENT, icon: "invoices", columns: ["number", "title", "client_id", "invoice_date", "due_date", "payment_status", "total_incl_vat", "open_amount"], roomy: ["invoice_date", "open_amount"], counted: ["draft", "open", "overdue", "partial"],
    tabs: [["all", ""], ["draft", "payment_status=draft"], ["open", "payment_status=open"], ["overdue", "payment_status=open,overdue,partial&due_date_to={yesterday}&collected=false&owed=true"], ["partial", "payment_status=partial"], ["paid", "payment_status=paid"]] },
  quotes: { ...DOCUMENT, icon: "quotes", columns: ["number", "title", "client_id", "invoice_date", "due_date", "payment_status", "total_incl_vat"], roomy: ["invoice_date"], counted: ["draft", "open"],
    tabs: [["all", ""], ["draft", "payment_status=draft"], ["open", "payment_status=open"], ["accepted", "payment_status=accepted"], ["rejected", "payment_status=rejected"]] },
  workorders: { ...DOCUMENT, icon: "workorders", columns: ["number", "title", "client_id", "invoice_date", "payment_status", "total_incl_vat"], counted: ["draft", "open"],
    tabs: [["all", ""], ["draft", "payment_status=draft"], ["open", "payment_status=open"], ["completed", "payment_status=completed"]] },
  subscriptions: { icon: "subscriptions", status: "status", amount: "total_incl_vat", columns: ["number", "title", "client_id", "next_generate", "status", "total_incl_vat"], roomy: ["", "number"],
    card: { title: "title", sub: ["client_id", "next_generate"], end: "total_incl_vat", status: "status" }, tabs: [["all", ""], ["active", "status=active"], ["draft", "status=draft"], ["ended", "status=ended"]] },
  products: { icon: "products", columns: ["name", "code", "unit", "vat_rate", "active", "price"], card: { title: "name", sub: ["code", "unit"], end: "price", status: "active" } },
  clients: { icon: "clients", columns: ["company_name", "firstname", "email", "phone", "city", "open_amount"], groups: /** @type {any} */ (CONTACT), roomy: ["", "phone"], card: { title: "company_name", sub: ["city", "email"], end: "open_amount" }, starts: { type: "company", country: "NL" } },
  suppliers: { icon: "suppliers", columns: ["company_name", "firstname", "email", "phone", "city"], groups: /** @type {any} */ (CONTACT), card: { title: "company_name", sub: ["city", "email"] }, starts: { country: "NL" } },
  deals: { icon: "deals", starts: { status: "open" }, status: "status", amount: "amount", columns: ["title", "client_id", "phase_id", "priority", "expected_close_date", "status", "amount"], roomy: ["priority"], card: { title: "title", sub: ["client_id", "phase_id"], end: "amount", status: "status" } },
  tickets: { icon: "tickets", groups: [["ticket", ["subject", "client_id", "project_id", "priority", "status", "assignee_id"]], ["sender", ["client_name", "email"]]], status: "status", columns: ["number", "subject", "client_name", "priority", "status", "created_at"], card: { title: "subject", sub: ["number", "client_name"], status: "status" } },
  tasks: { icon: "tasks", status: "status", columns: ["title", "category", "client_id", "project_id", "deadline", "status"], card: { title: "title", sub: ["deadline", "client_id"], status: "status" }, tabs: [["open", "status=open&sort=deadline&order=asc"], ["completed", "status=completed"], ["all", ""]] },
  projects: { icon: "projects", status: "status", columns: ["name", "client_id", "status", "end_date", "budget", "budget_used"], roomy: ["", "budget"], card: { title: "name", sub: ["number", "client_id"], end: "budget", status: "status" } },
  notes: { icon: "note" },
  files: { icon: "files", tabs: [["uploaded", "origin=uploaded"], ["document", "origin=document"], ["all", ""]], columns: ["name", "client_id", "content_type", "size", "created_at"], card: { title: "name", sub: ["client_id", "content_type"], end: "size" } },
  flows: { icon: "flows" },
  runs: { icon: "flows", status: "status", columns: ["flow_name", "entity_id", "status", "created_at"], card: { title: "flow_name", sub: ["entity_id"], status: "status" } },
  users: { icon: "clients", status: "status", columns: ["name", "email", "role", "language", "status"], card: { title: "name", sub: ["email"], status: "status", end: "role" } },
  corporate_identities: { columns: ["name", "primary_color", "secondary_color", "is_default"], groups: [["look", ["name", "logo_file_id", "primary_color", "secondary_color", "footer", "is_default"]], ["address", ["address", "zipcode", "city", "country", "email", "phone", "website"]], ["bank", ["iban", "bic", "vat_number", "company_registration_number"]]] },
  keys: { icon: "link", columns: ["name", "hint", "scopes", "last_used_at", "expires_at", "revoked_at"], card: { title: "name", sub: ["hint"] } },
  custom_fields: { columns: ["label", "entity", "key", "type", "options"], starts: { entity: "client", type: "text" } },
  // The server puts a new one last.
  pipelines: { starts: { order: "" } },
  phases: { columns: ["name", "pipeline_id", "order"], card: { title: "name", sub: ["pipeline_id"] } },
  payment_terms: { columns: ["label", "code", "days"], card: { title: "label", sub: [] } },
  email_domains: { status: "status", columns: ["domain", "subdomain", "status", "type", "created_at"], roomy: ["", "created_at"], card: { title: "domain", sub: ["type"], status: "status" }, starts: { type: "sending" } },
  ticket_channels: { columns: ["name", "email", "inbound_email", "active"], card: { title: "name", sub: ["email"], status: "active" } },
  mail_templates: { starts: { language: "nl" } },
  webhook_endpoints: { icon: "flows", columns: ["url", "description", "events", "active", "failing_since"] },
  batches: { icon: "pay", status: "status" },
};

/** @param {string} table @returns {Taste} */
export const tasteOf = (table) => TASTE[table] ?? {};

const TONES = {
  good: ["paid", "accepted", "completed", "won", "approved", "verified", "active", "success", "succeeded", "delivered", "true", "made", "done"],
  wait: ["open", "partial", "sent", "submitted", "pending", "waiting", "retrying", "pending_approval", "queued", "running", "planned", "new", "invited", "owed", "checked", "undoing"],
  bad: ["overdue", "rejected", "expired", "lost", "failed", "chargeback", "suspended", "high", "urgent"],
};

/** @param {string} status */
export function toneOf(status) {
  const found = Object.entries(TONES).find(([, all]) => all.includes(status.toLowerCase()));
  return found ? found[0] : "calm";
}
