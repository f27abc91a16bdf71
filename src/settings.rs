//! The settings of an account, as a single record.

pub mod account;
pub mod changed_rate;
pub mod corporate_identity;
pub mod custom_field;
pub mod email_domain;
pub mod office_hours;
pub mod payment_term;
pub mod tax_rate;

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{FieldCode, FieldErrors, Result, violation};
use engine::input::did_you_mean;
use engine::input::pending::Pending;
use engine::record::{ALL, COMPUTED, DETAIL, Fields, INPUT, Kind, Model, NOWHERE, Record, Sealed, Texts, UPDATED};
use engine::records::{self, Work};
use engine::registry;
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use engine::secrets::columns::SecretColumn;
use engine::secrets::vault::Place;
use engine::{choice, record};
use money::Amount;
use serde_json::json;
use store::{Migration, Tx};

use crate::files::usage::Usage;
use tax_rate::{TaxContext, TaxRate};

choice! {
    /// What happens to the invoices of subscriptions.
    pub enum Generation {
        /// Created as drafts.
        Draft = "draft",
        /// Created as final invoices.
        #[default]
        Final = "final",
        /// Created as final invoices and mailed.
        FinalAndSend = "final_and_send",
    }
}

choice! {
    /// The payment provider.
    pub enum ProviderName {
        /// A provider for testing, with its own page.
        Sandbox = "sandbox",
        /// Mollie.
        Mollie = "mollie",
        /// Your bank, with signed mandates and batch files.
        #[default]
        Manual = "manual",
    }
}

choice! {
    /// Whether the account reaches others.
    pub enum Outside {
        /// Mail, webhooks, HTTP calls of flows and payment requests are sent.
        #[default]
        Live = "live",
        /// They are recorded and shown, but not sent.
        Recorded = "recorded",
    }
}

choice! {
    /// The language of the account.
    pub enum Language {
        /// English.
        #[default]
        English = "en",
        /// Dutch.
        Dutch = "nl",
    }
}

choice! {
    /// Who needs a second factor to sign in.
    pub enum TwoFactor {
        /// Nobody; everybody may have one.
        #[default]
        Off = "off",
        /// Owners.
        Owners = "owners",
        /// Everybody.
        All = "all",
    }
}

/// Why something was not sent.
pub const NOT_SENT: &str =
    "Recorded, not sent: this is an account with a test clock, and its setting 'outside' is not 'live'.";

record! {
    /// The preferences of the account.
    pub struct Settings = "settings" in "settings", meta: NOWHERE, updated_at: ALL;

    /// Language of the ready-made flows: those that nobody has changed or enabled follow it. Documents have their own language.
    language: Language = INPUT.default("\"en\"").example("\"en\"");
    /// Code of the tax rate of rows that name no rate; without it, they have 0%, with a warning.
    default_vat_code: String = INPUT.at_most(32).example("\"NL21\"");
    /// Whether a document can only become final with a client, rows and a VAT rate in each row. Otherwise what is missing is a
    /// warning. Accounts that are set up in the browser start with `true`.
    strict_final: bool = INPUT.example("false");
    /// What happens to the invoices of subscriptions.
    subscription_generation: Generation = INPUT.default("\"final\"").example("\"final\"");
    /// Payment term of new clients in days, unless their own `payment_term` is set; 0 is the same day.
    payment_term: i64 = INPUT.between(0, 3650).resets_to("14").example("14");
    /// Days that a quote to a new client is valid, unless its own `quote_expiration_days` is set.
    quote_expiration_days: i64 = INPUT.between(0, 3650).resets_to("30").example("30");
    /// Days before the end of a subscription at which `subscription.expiring` is emitted; 0 for never.
    subscription_expiring_days: i64 = INPUT.between(0, 365).resets_to("30").example("30");
    /// Days after which `document.draft` is emitted again for an unchanged draft; 0 for never, as with all of these.
    document_draft_days: i64 = INPUT.between(0, 3650).resets_to("7").example("7");
    /// Days after sending a quote after which `quote.silent` is emitted if there is no response.
    quote_silent_days: i64 = INPUT.between(0, 3650).resets_to("7").example("7");
    /// Days without a change after which `deal.stalled` is emitted for an open deal.
    deal_stalled_days: i64 = INPUT.between(0, 3650).resets_to("14").example("14");
    /// Days in one phase after which `deal.phase_idle` is emitted for an open deal.
    deal_phase_idle_days: i64 = INPUT.between(0, 3650).resets_to("14").example("14");
    /// Days without an open task after which `deal.no_followup` is emitted for an open deal.
    deal_no_followup_days: i64 = INPUT.between(0, 3650).resets_to("1").example("1");
    /// Days without a message after which `ticket.stale` is emitted.
    ticket_stale_days: i64 = INPUT.between(0, 3650).resets_to("3").example("3");
    /// Days after which `mail.unanswered` is emitted for an unanswered message of a client.
    mail_unanswered_days: i64 = INPUT.between(0, 3650).resets_to("2").example("2");
    /// Days without a document or a message after which `customer.inactive` is emitted.
    customer_inactive_days: i64 = INPUT.between(0, 3650).resets_to("180").example("180");
    /// Days after a contact after which `customer.no_followup` is emitted for a client without an open task.
    customer_no_followup_days: i64 = INPUT.between(0, 3650).resets_to("1").example("1");
    /// Days that finished flow runs are kept; 0 for always.
    runs_kept_days: i64 = INPUT.between(0, 3650).resets_to("90").example("90");
    /// Time of day from which reminders and automatic mail leave, in the account's time zone; mail that is sent at another time
    /// waits.
    mail_hours_from: String = INPUT.at_most(5).default("\"08:00\"").kept().example("\"08:00\"");
    /// Time of day until which they leave, up to 24:00.
    mail_hours_until: String = INPUT.at_most(5).default("\"18:00\"").kept().example("\"18:00\"");
    /// Days of the week on which they leave: `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`.
    mail_days: Texts = INPUT.default("[\"mon\", \"tue\", \"wed\", \"thu\", \"fri\"]").kept().example("[\"mon\", \"tue\", \"wed\", \"thu\", \"fri\"]");
    /// Payment provider: `mollie`, `manual` with files for your bank, or `sandbox`, which only accounts with a test clock or
    /// demo data can use, unless the operator allows it.
    provider: ProviderName = INPUT.default("\"manual\"").example("\"manual\"");
    /// Your Mollie API key. It is never shown.
    mollie_key: Sealed = INPUT.shown(NOWHERE).example("\"\"");
    /// First characters of the Mollie API key.
    mollie_key_hint: String = COMPUTED;
    /// Whether clients can pay online on the page of an invoice; requires a provider that takes online payments.
    online_payments: bool = INPUT.example("false");
    /// Default amount of a verification payment.
    verification_amount: Amount = INPUT.between(0, 1000).resets_to("0.01").example("0.01");
    /// Your SEPA creditor identifier, for direct debit through your bank.
    creditor_id: String = INPUT.at_most(35).example("\"NL69ABC123456780000\"");
    /// Whether mail, webhooks, HTTP calls of flows and payment requests are sent (`live`) or only `recorded`. New accounts
    /// with a test clock start with `recorded`; other accounts are always `live`.
    outside: Outside = INPUT.default("\"live\"").example("\"live\"");
    /// Whether the account was created with demo data.
    demo: bool = COMPUTED;
    /// Who needs a second factor to sign in: nobody (`off`), `owners` or `all`. Users without one can only add one until they
    /// have it. People who sign in through OpenID Connect are exempt.
    two_factor: TwoFactor = INPUT.default("\"off\"").example("\"off\"");
}

impl Model for Settings {
    fn check(&self, faults: &mut FieldErrors) {
        if self.verification_amount.scaled() <= 0 {
            faults.add("verification_amount", violation(FieldCode::OutOfRange, "must be more than 0"));
        }
        if self.mollie_key.plain().chars().any(|c| !c.is_ascii_graphic()) {
            faults.add("mollie_key", violation(FieldCode::InvalidFormat, "is not a valid Mollie API key"));
        }
        self.check_hours(faults);
        let id = &self.creditor_id;
        if !id.is_empty() && !debits::creditor_id_is_valid(id) {
            faults.add("creditor_id", violation(FieldCode::InvalidFormat, "is not a valid creditor identifier"));
        }
    }

    fn before_save(&mut self, _: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if self.mollie_key.is_empty() {
            self.mollie_key_hint = String::new();
        }
        if self.mollie_key.plain().is_empty() {
            return Ok(());
        }
        // The same key as before is no change.
        if let Some(before) = before
            && before.key(ctx).is_ok_and(|key| key == self.mollie_key.plain())
        {
            self.mollie_key.clone_from(&before.mollie_key);
            return Ok(());
        }
        let start: String = self.mollie_key.plain().chars().take(8).collect();
        self.mollie_key_hint = format!("{start}…");
        if self.base.id.is_empty() {
            self.base.id = ctx.new_id();
        }
        self.mollie_key.seal(&ctx.site.vault, &key_place(ctx.account, &self.base.id))
    }
}

/// The column with the Mollie API key.
pub const MOLLIE_KEY: SecretColumn = SecretColumn { table: "settings", column: "mollie_key" };

fn key_place(account: i64, id: &str) -> Place<'_> {
    Place { account, table: MOLLIE_KEY.table, column: MOLLIE_KEY.column, id }
}

impl Settings {
    /// Returns the settings of the account. One that may not use the sandbox, or no longer, is paid through its bank.
    pub fn of(tx: &mut Tx, ctx: &Ctx) -> Result<Settings> {
        let mut settings = Settings::stored(tx, ctx)?;
        settings.leave_sandbox(ctx);
        Ok(settings)
    }

    fn stored(tx: &mut Tx, ctx: &Ctx) -> Result<Settings> {
        records::remembered(tx, ctx, "settings", |tx| {
            let sql = format!("{} WHERE account_id = $1 LIMIT 1", Settings::sql().select);
            match tx.first(&sql, &[ctx.account.into()], Settings::from_row)? {
                Some(settings) => Ok(settings),
                // Nothing that somebody deletes from the database lets a test account send.
                None if ctx.has_test_clock => Ok(Settings { outside: Outside::Recorded, ..Settings::blank()? }),
                None => Settings::blank(),
            }
        })
    }

    fn leave_sandbox(&mut self, ctx: &Ctx) {
        if self.provider == ProviderName::Sandbox && !self.may_use_sandbox(ctx) {
            self.provider = ProviderName::Manual;
            self.online_payments = false;
        }
    }

    /// Whether the sandbox marks no real invoices as paid, or the operator allows it to.
    fn may_use_sandbox(&self, ctx: &Ctx) -> bool {
        ctx.has_test_clock || self.demo || ctx.quotas.provided.sandbox
    }

    /// Whether the provider takes payments on the page of an invoice.
    pub fn can_take_online_payments(&self, ctx: &Ctx) -> bool {
        match self.provider {
            ProviderName::Sandbox => self.may_use_sandbox(ctx),
            ProviderName::Mollie => {
                !self.mollie_key.is_empty() || ctx.quotas.provided.mollie || self.outside == Outside::Recorded
            }
            ProviderName::Manual => false,
        }
    }

    /// Whether no money moves in the payments of the provider.
    pub fn is_testing_payments(&self, ctx: &Ctx) -> bool {
        let has_test_key = match self.mollie_key.is_empty() {
            true => ctx.quotas.provided.mollie_test,
            false => self.mollie_key_hint.starts_with("test_"),
        };
        match self.provider {
            ProviderName::Sandbox => true,
            ProviderName::Mollie => has_test_key || self.outside == Outside::Recorded,
            ProviderName::Manual => false,
        }
    }

    /// Whether what the account sends is only recorded.
    pub fn is_sealed(tx: &mut Tx, ctx: &Ctx) -> Result<bool> {
        Ok(ctx.has_test_clock && Settings::of(tx, ctx)?.outside == Outside::Recorded)
    }

    /// Lets a new account with a test clock send.
    pub fn go_live(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let before = Settings::stored(tx, ctx)?;
        let mut settings = Settings { outside: Outside::Live, ..before.clone() };
        records::change(tx, ctx, &before, &mut settings, "updated")
    }

    /// Marks a new account as one with demo data, which can use the sandbox.
    pub fn become_demo(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
        let before = Settings::stored(tx, ctx)?;
        let mut settings = Settings { demo: true, provider: ProviderName::Sandbox, ..before.clone() };
        records::change(tx, ctx, &before, &mut settings, "updated")
    }

    /// Returns the settings of the account with the Mollie API key decrypted, to call Mollie.
    pub fn with_key(tx: &mut Tx, ctx: &Ctx) -> Result<Settings> {
        let mut settings = Settings::of(tx, ctx)?;
        settings.mollie_key = Sealed::Plain(settings.key(ctx)?);
        Ok(settings)
    }

    fn key(&self, ctx: &Ctx) -> Result<String> {
        self.mollie_key.open(&ctx.site.vault, &key_place(ctx.account, &self.base.id))
    }
}

impl Settings {
    /// Checks the default tax rate, and spells its code as the rate does.
    fn resolve_vat_code(&mut self, tx: &mut Tx, ctx: &Ctx, faults: &mut FieldErrors) -> Result<()> {
        let code = self.default_vat_code.trim().to_string();
        if code.is_empty() {
            self.default_vat_code.clear();
            return Ok(());
        }
        let rates = tax_rate::all(tx, ctx)?;
        let is_sold = |rate: &&TaxRate| rate.context == TaxContext::Sales && rate.code.eq_ignore_ascii_case(&code);
        match rates.iter().find(is_sold) {
            Some(rate) => self.default_vat_code.clone_from(&rate.code),
            None => {
                let sold = rates.iter().filter(|rate| rate.context == TaxContext::Sales);
                let guess = did_you_mean(&code, sold.map(|rate| rate.code.as_str()));
                let message = format!("is not the code of any tax rate for sales{guess}");
                faults.add("default_vat_code", violation(FieldCode::ReferenceNotFound, message));
            }
        }
        Ok(())
    }

    /// Lets the default tax rate follow a rate that gets another code. Without it, rows that name no rate would have 0%.
    pub(crate) fn rename_vat_code(tx: &mut Tx, ctx: &Ctx, old: &str, new: &str) -> Result<()> {
        let before = Settings::stored(tx, ctx)?;
        if before.default_vat_code != old || old == new {
            return Ok(());
        }
        let mut settings = Settings { default_vat_code: new.to_string(), ..before.clone() };
        records::change(tx, ctx, &before, &mut settings, "updated")
    }

    /// Sets the language of a new account.
    pub fn speak(tx: &mut Tx, ctx: &Ctx, language: Language) -> Result<()> {
        let before = Settings::stored(tx, ctx)?;
        let mut settings = Settings { language, ..before.clone() };
        records::change(tx, ctx, &before, &mut settings, "updated")
    }

    /// Makes an account that people set up in the browser strict, in the language of its first owner.
    pub fn be_set_up(tx: &mut Tx, ctx: &Ctx, language: Language) -> Result<()> {
        let before = Settings::stored(tx, ctx)?;
        let mut settings = Settings { strict_final: true, language, ..before.clone() };
        records::change(tx, ctx, &before, &mut settings, "updated")
    }

    /// Checks the values that depend on the kind of account and on the server.
    fn check_account(&self, ctx: &Ctx, faults: &mut FieldErrors) {
        if self.outside == Outside::Recorded && !ctx.has_test_clock {
            let message = "can only be 'recorded' in an account with a test clock";
            faults.add("outside", violation(FieldCode::InvalidChoice, message));
        }
        if self.provider == ProviderName::Sandbox && !self.may_use_sandbox(ctx) {
            let message =
                "can only be 'sandbox' in an account with a test clock or demo data; use 'mollie' or 'manual'";
            faults.add("provider", violation(FieldCode::InvalidChoice, message));
        } else if self.online_payments && !self.can_take_online_payments(ctx) {
            let message = "requires a provider that takes online payments: set provider to 'mollie', with a mollie_key";
            faults.add("online_payments", violation(FieldCode::InvalidChoice, message));
        }
    }
}

fn get(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        let settings = Settings::of(tx, ctx)?;
        Ok(Answer::record(ctx, &settings, DETAIL))
    }))
}

fn patch(call: Call) -> Result<Work> {
    let pending: Pending<Settings> = Pending::patch(&call, true)?;
    Ok(Box::new(move |tx, ctx| {
        let before = Settings::stored(tx, ctx)?;
        ctx.expects(before.base.version)?;
        let mut settings = before.clone();
        settings.leave_sandbox(ctx);
        pending.merge_into(&mut settings);
        let mut faults = pending.missing(tx, ctx)?;
        let mut whole = FieldErrors::default();
        settings.check(&mut whole);
        settings.check_account(ctx, &mut whole);
        settings.resolve_vat_code(tx, ctx, &mut whole)?;
        faults.join(whole.into_result())?;
        faults.into_result()?;
        if settings.mollie_key != before.mollie_key || settings.two_factor != before.two_factor {
            registry::check_confirmed(tx, ctx)?;
        }
        if before.base.id.is_empty() {
            records::add(tx, ctx, &mut settings)?;
        } else {
            records::change(tx, ctx, &before, &mut settings, "updated")?;
        }
        Ok(Answer::record(ctx, &settings, UPDATED).with_texts("warnings", pending.warnings()))
    }))
}

/// Fields of the response of `GET /v1/settings/usage`.
const USAGE: &[Part] = &[
    Part("file_bytes", "integer", "Total size of the account's files, in bytes."),
    Part("file_bytes_quota", "integer", "The quota in bytes; 0 for no limit, as with all quotas."),
    Part("files", "integer", "Number of files of the account."),
    Part("files_quota", "integer", "The quota of files."),
    Part("mails_today", "integer", "Recipients mailed today, in the account's time zone."),
    Part("mails_per_day_quota", "integer", "The quota of recipients per day."),
    Part("endpoints_per_host_quota", "integer", "The quota of webhook endpoints per host."),
];

fn usage(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        let (usage, quotas) = (Usage::of(tx, ctx)?, ctx.quotas);
        Ok(Answer::json(&json!({
            "file_bytes": usage.file_bytes, "file_bytes_quota": quotas.file_bytes,
            "files": usage.files, "files_quota": quotas.files,
            "mails_today": usage.mails_today, "mails_per_day_quota": quotas.mails_per_day,
            "endpoints_per_host_quota": quotas.endpoints_per_host,
        })))
    }))
}

/// The resource of settings.
pub fn resource() -> Resource {
    Resource::of::<Settings>("Settings", "settings", MIGRATIONS)
        .guarded()
        .route(Method::Get, "", "Retrieve the settings", get)
        .extension()
        .route(Method::Patch, "", "Change the settings", patch)
        .body::<Settings>(RequestBody::Patch)
        .returns(Returns::Item(UPDATED))
        .extension()
        .route(Method::Get, "/usage", "Retrieve the usage of the account's quotas", usage)
        .returns(Returns::Parts(USAGE))
        .extension()
}

/// Creates the default settings.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let mut settings = Settings::blank()?;
    if ctx.has_test_clock {
        settings.outside = Outside::Recorded;
        settings.provider = ProviderName::Sandbox;
    }
    records::add(tx, ctx, &mut settings)
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 16,
    name: "settings",
    sql: "
CREATE TABLE settings (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    subscription_generation TEXT NOT NULL,
    subscription_expiring_days BIGINT NOT NULL,
    document_draft_days BIGINT NOT NULL,
    quote_silent_days BIGINT NOT NULL,
    deal_stalled_days BIGINT NOT NULL,
    deal_phase_idle_days BIGINT NOT NULL,
    deal_no_followup_days BIGINT NOT NULL,
    ticket_stale_days BIGINT NOT NULL,
    mail_unanswered_days BIGINT NOT NULL,
    customer_inactive_days BIGINT NOT NULL,
    customer_no_followup_days BIGINT NOT NULL,
    provider TEXT NOT NULL,
    mollie_key TEXT NOT NULL,
    mollie_key_hint TEXT NOT NULL,
    online_payments BIGINT NOT NULL,
    verification_amount BIGINT NOT NULL,
    creditor_id TEXT NOT NULL,
    runs_kept_days BIGINT NOT NULL DEFAULT 90,
    payment_term BIGINT NOT NULL DEFAULT 14,
    quote_expiration_days BIGINT NOT NULL DEFAULT 30,
    outside TEXT NOT NULL DEFAULT 'live',
    two_factor TEXT NOT NULL DEFAULT 'off',
    demo BIGINT NOT NULL DEFAULT 0,
    mail_hours_from TEXT NOT NULL DEFAULT '08:00',
    mail_hours_until TEXT NOT NULL DEFAULT '18:00',
    mail_days TEXT NOT NULL DEFAULT 'mon
tue
wed
thu
fri',
    language TEXT NOT NULL DEFAULT 'en',
    default_vat_code TEXT NOT NULL DEFAULT '',
    strict_final BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE UNIQUE INDEX settings_once ON settings (account_id);
",
}];
