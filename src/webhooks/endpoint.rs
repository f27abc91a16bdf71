//! Webhook endpoints: their URLs and signing secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::authors::{Author, AuthorType, Authority};
use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::input::Input;
use engine::json::Json;
use engine::random;
use engine::record::{
    ACTED, ALL, Body, COMPUTED, CREATED, Callable, INPUT, Model, NOWHERE, REQUIRED, Sealed, Texts, UPDATED, When,
};
use engine::records::{self, Work};
use engine::registry::check_confirmed;
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::secrets::columns::SecretColumn;
use engine::secrets::vault::{Place, Vault};
use engine::tables::Logged;
use engine::{input, log, record};
use store::{Migration, Tx};

use crate::automation::addresses::Addresses;
use crate::automation::{events, needs};
use crate::files::usage;
use crate::webhooks::breaker;
use crate::webhooks::ending;
use crate::webhooks::signature;

record! {
    /// A URL that receives webhooks.
    pub struct WebhookEndpoint = "webhook_endpoint" in "webhook_endpoints", created_at: ALL;

    /// URL that receives the webhooks: a public address, with https or http.
    url: Callable = REQUIRED.names().at_most(2048).example("\"https://example.com/hooks/kantoor\"");
    /// Events to send: names such as `invoice.paid`, prefixes such as `invoice.*`, or `*` for all that you may read. `client.*` is another name of `customer.*`.
    events: Texts = INPUT.default("[\"*\"]").example("[\"invoice.*\"]");
    /// Type of the author: `key`, `user` or `operator`. The endpoint receives the events that its author may read.
    author_type: AuthorType = COMPUTED.in_meta();
    /// The key or the user that created or enabled the endpoint, or last changed its `url` or `events`; empty for the
    /// operator.
    author_id: String = COMPUTED.in_meta();
    /// Description.
    description: String = INPUT.example("\"Bookkeeping\"");
    /// Whether webhooks are sent. Events that happen while it is false are not sent later.
    active: bool = INPUT.filter().default("true").example("true");
    /// Why Kantoor disabled the endpoint; empty if it did not.
    disabled_reason: String = COMPUTED.at_most(1000);
    /// When Kantoor disabled the endpoint.
    disabled_at: When = COMPUTED.nullable();
    /// Since when deliveries have been failing; null if the last one succeeded.
    failing_since: When = COMPUTED.nullable();
    /// When the next probe is sent, after several webhooks in a row failed. Nothing is sent before that.
    next_probe_at: When = COMPUTED.nullable();
    /// The signing secret. It is shown only when it is created.
    secret: Sealed = COMPUTED.shown(CREATED.and(ACTED));
    /// The previous secret.
    old_secret: Sealed = COMPUTED.shown(NOWHERE);
    /// Until when webhooks are also signed with the previous secret.
    old_secret_until: When = COMPUTED.nullable();
}

impl Model for WebhookEndpoint {
    /// Each event may be sent to all of them.
    const MOST: i64 = 100;

    fn check(&self, faults: &mut FieldErrors) {
        if self.events.0.is_empty() {
            faults.add("events", violation(FieldCode::Required, "must contain at least one; use \"*\" for all events"));
        }
        for odd in self.events.0.iter().filter(|name| !is_pattern(name)) {
            let message =
                format!("contains '{odd}', which is not a name such as invoice.paid, a prefix such as invoice.*, or *");
            faults.add("events", violation(FieldCode::InvalidFormat, message));
        }
    }
}

fn is_pattern(name: &str) -> bool {
    let plain = |part: &str| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ':');
        !part.is_empty() && part.chars().all(letter)
    };
    name == "*" || name.strip_suffix(".*").unwrap_or(name).split('.').all(plain)
}

impl WebhookEndpoint {
    /// Whether the endpoint subscribes to an event.
    pub fn wants(&self, event: &str) -> bool {
        self.events.0.iter().any(|wanted| events::matches(wanted, event))
    }

    /// Warns of names and prefixes that match no event.
    fn doubts(&self) -> impl Iterator<Item = String> {
        self.events.0.iter().filter_map(|name| Some(format!("events: {}", events::never_sent(name)?)))
    }

    /// Rejects a caller that may not read the events that the endpoint names.
    fn check_reader(&self, ctx: &Ctx) -> Result<()> {
        let missing = self.missing(&Authority::calling(ctx));
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("These events require scopes that you do not have: {}.", missing.join(", "));
        Err(Error::new(Code::Forbidden, message))
    }

    /// Rejects a caller that may not have the secret, with which such events can be signed: `*` stands for what the author may
    /// read.
    fn check_signer(&self, ctx: &Ctx) -> Result<()> {
        self.check_reader(ctx)?;
        let (author, caller) = ((self.author_type, &self.author_id), Author::calling(ctx));
        let is_limited = author != (caller.kind, &caller.id) && !Authority::calling(ctx).may("*");
        if is_limited && self.events.0.iter().any(|name| name == "*") {
            let message =
                "Somebody else receives all events at this endpoint, so rotating its secret requires the scope '*'.";
            return Err(Error::new(Code::Forbidden, message));
        }
        Ok(())
    }

    /// Makes the caller the author, who must be allowed to read the events that the endpoint names.
    fn adopt(&mut self, ctx: &Ctx) -> Result<()> {
        self.check_reader(ctx)?;
        let author = Author::calling(ctx);
        (self.author_type, self.author_id) = (author.kind, author.id);
        Ok(())
    }

    /// Returns what the author may do now.
    pub fn authority(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Authority> {
        Author { kind: self.author_type, id: self.author_id.clone() }.authority(tx, ctx)
    }

    /// Returns why the endpoint may no longer receive the events that it names, if so.
    pub fn unfit(&self, authority: &Authority) -> Option<String> {
        let reason = match authority {
            Authority::Ended(reason) => reason.clone(),
            _ => match self.missing(authority) {
                missing if missing.is_empty() => return None,
                missing => format!("its author does not have the required scopes: {}", missing.join(", ")),
            },
        };
        Some(format!("The endpoint was disabled: {reason}. Whoever enables it becomes its author."))
    }

    /// Describes the scopes that the named events require and that are missing. `*` stands for what the author may read.
    fn missing(&self, authority: &Authority) -> Vec<String> {
        let named = self.events.0.iter().filter(|name| *name != "*");
        let lacking = named.filter_map(|name| {
            let scope = needs::of_event(name).filter(|scope| !authority.may(scope))?;
            Some(format!("'{scope}' ({name})"))
        });
        lacking.collect()
    }

    /// Decrypts the current signing secrets, newest first.
    pub fn secrets(&self, account: i64, vault: &Vault, now: engine::clock::Moment) -> Result<Vec<String>> {
        let mut current = vec![(SECRET, &self.secret)];
        if self.old_secret_until.0.is_some_and(|until| now < until) {
            current.push((OLD_SECRET, &self.old_secret));
        }
        current.into_iter().map(|(column, sealed)| self.opened(account, vault, column, sealed)).collect()
    }

    fn opened(&self, account: i64, vault: &Vault, column: SecretColumn, sealed: &Sealed) -> Result<String> {
        let id = &self.base.id;
        let secret = sealed.open(vault, &place(account, column, id))?;
        if !signature::is_secret(&secret) {
            let wrong = store::Error::unreadable("it is not a secret in base64");
            return Err(wrong.at(column.table, id, column.column).into());
        }
        Ok(secret)
    }

    /// Disables the endpoint automatically, and logs it.
    pub fn disable(&self, tx: &mut Tx, ctx: &Ctx, reason: &str) -> Result<()> {
        let mut record = self.clone();
        record.active = false;
        record.disabled_reason = reason.chars().take(1000).collect();
        record.disabled_at = When(Some(ctx.now));
        record.failing_since = When(None);
        record.next_probe_at = When(None);
        records::change(tx, ctx, self, &mut record, "disabled")?;
        switch(tx, ctx, &record)
    }
}

/// The columns with secrets.
pub const SECRET: SecretColumn = SecretColumn { table: "webhook_endpoints", column: "secret" };
/// The previous secret.
pub const OLD_SECRET: SecretColumn = SecretColumn { table: "webhook_endpoints", column: "old_secret" };

fn place(account: i64, column: SecretColumn, id: &str) -> Place<'_> {
    Place { account, table: column.table, column: column.column, id }
}

input! {
    /// The overlap of a rotated secret.
    pub struct Rotate;

    /// For how many hours webhooks are also signed with the old secret.
    overlap_hours: i64 = INPUT.between(0, 168).default("24").example("24");
}

impl Body for Rotate {}

/// The resource of endpoints.
pub fn resource() -> Resource {
    Resource::of::<WebhookEndpoint>("Webhook endpoints", "webhooks", MIGRATIONS)
        .guarded()
        // The breaker updates the state of its deliveries.
        .logged(Logged::Except(&["failing_since", "next_probe_at"]))
        .list::<WebhookEndpoint>()
        .extension()
        .verb(Verb::Create, create)
        .extension()
        .get::<WebhookEndpoint>()
        .extension()
        .verb(Verb::Patch, patch)
        .extension()
        .verb(Verb::Delete, delete)
        .extension()
        .route(Method::Post, "/{id}/rotate-secret", "Rotate the secret, with an overlap for the old one", rotate)
        .body::<Rotate>(RequestBody::Maybe)
        .returns(Returns::Item(ACTED))
        .extension()
}

/// `POST /v1/webhook-endpoints`
fn create(call: Call) -> Result<Work> {
    let input: Input<WebhookEndpoint> = match input::create(&call) {
        Ok(input) => input,
        Err(error) => return sent(&call).reject(error),
    };
    let secret = new_secret()?;
    Ok(sent(&call).checked(move |tx, ctx, faults| {
        faults.into_result()?;
        check_confirmed(tx, ctx)?;
        let mut record = input.record();
        usage::room_for_endpoint(tx, ctx, "", &record.url.0)?;
        record.adopt(ctx)?;
        record.base.id = ctx.new_id();
        record.secret = sealed(ctx, SECRET, &record.base.id, &secret)?;
        records::add(tx, ctx, &mut record)?;
        switch(tx, ctx, &record)?;
        record.secret = Sealed::Plain(secret.clone());
        let warnings: Vec<String> = input.warnings.iter().cloned().chain(record.doubts()).collect();
        Ok(Answer::created(ctx, &record, CREATED).with_texts("warnings", &warnings))
    }))
}

/// `PATCH /v1/webhook-endpoints/{id}`
fn patch(call: Call) -> Result<Work> {
    let input: Input<WebhookEndpoint> = match input::patch(&call) {
        Ok(input) => input,
        Err(error) => return sent(&call).reject(error),
    };
    let addresses = sent(&call);
    Ok(addresses.checked(move |tx, ctx, mut faults| {
        let before: WebhookEndpoint = records::find_to_change(tx, ctx, &call)?;
        let mut record = before.clone();
        input.merge_into(&mut record);
        if record.active && !before.active && ending::any_open(tx, ctx, &before.base.id)? {
            // A flow tries again, and the job that ends them is done by then.
            if call.early {
                let message =
                    "The deliveries from before the endpoint was disabled are still being ended; retry shortly.";
                return Err(Error::new(Code::InvalidTransition, message));
            }
            // Deliveries from before it was disabled would be sent.
            let (call, id) = (call.clone(), before.base.id);
            return Ok(Answer::after(move |app, caller| {
                ending::finish(app, caller, &id)?;
                patch(call.clone())
            }));
        }
        Model::check(&record, &mut faults);
        faults.into_result()?;
        // Otherwise a caller could redirect events that it may not read.
        if record.url != before.url || record.events != before.events || (record.active && !before.active) {
            check_confirmed(tx, ctx)?;
            record.adopt(ctx)?;
        }
        if record.url != before.url {
            usage::room_for_endpoint(tx, ctx, &record.base.id, &record.url.0)?;
        }
        if record.active {
            record.disabled_reason = String::new();
            record.disabled_at = When(None);
        }
        if record.active != before.active {
            record.failing_since = When(None);
            record.next_probe_at = When(None);
        }
        records::change(tx, ctx, &before, &mut record, "updated")?;
        if record.active != before.active {
            switch(tx, ctx, &record)?;
        }
        if record.url != before.url {
            breaker::probe_now(tx, ctx, &record.base.id)?;
        }
        let doubts = record.doubts().filter(|_| input.has("events"));
        let warnings: Vec<String> = input.warnings.iter().cloned().chain(doubts).collect();
        Ok(Answer::record(ctx, &record, UPDATED).with_texts("warnings", &warnings))
    }))
}

/// Returns the URL in a body.
fn sent(call: &Call) -> Addresses {
    let Some(Json::Object(members)) = &call.body else { return Addresses::default() };
    let urls = members.iter().filter_map(|(name, value)| match value {
        Json::Text(url) if name == "url" => Some((name.to_string(), url.trim().to_string())),
        _ => None,
    });
    Addresses(urls.collect())
}

/// `DELETE /v1/webhook-endpoints/{id}`
fn delete(call: Call) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        let record: WebhookEndpoint = records::find_to_change(tx, ctx, &call)?;
        records::remove(tx, ctx, &record)?;
        ending::begin(tx, ctx, &record.base.id)?;
        Ok(Answer::empty())
    }))
}

/// `POST /v1/webhook-endpoints/{id}/rotate-secret`
fn rotate(call: Call) -> Result<Work> {
    let input: Input<Rotate> = input::create(&call)?;
    let secret = new_secret()?;
    Ok(Box::new(move |tx, ctx| {
        let before: WebhookEndpoint = records::find_to_change(tx, ctx, &call)?;
        before.check_signer(ctx)?;
        check_confirmed(tx, ctx)?;
        let mut record = before.clone();
        let id = before.base.id.as_str();
        record.secret = sealed(ctx, SECRET, id, &secret)?;
        (record.old_secret, record.old_secret_until) = match input.record().overlap_hours {
            0 => (Sealed::default(), When(None)),
            // Without the key of the old secret, there is nothing to overlap with.
            hours => match before.opened(ctx.account, &ctx.site.vault, SECRET, &before.secret) {
                Err(_) => (Sealed::default(), When(None)),
                Ok(old) => {
                    // Receivers use real time, whatever the account's clock.
                    let until = ctx.machine_now.plus_seconds(hours * 3600);
                    (sealed(ctx, OLD_SECRET, id, &old)?, When(Some(until)))
                }
            },
        };
        records::change(tx, ctx, &before, &mut record, "secret_rotated")?;
        record.secret = Sealed::Plain(secret.clone());
        Ok(Answer::record(ctx, &record, ACTED).with_texts("warnings", &input.warnings))
    }))
}

/// Starts an enabled endpoint at the end of the log, or stops a disabled one.
fn switch(tx: &mut Tx, ctx: &Ctx, endpoint: &WebhookEndpoint) -> Result<()> {
    if !endpoint.active {
        return ending::begin(tx, ctx, &endpoint.base.id);
    }
    let last = log::last(tx, ctx.account)?;
    tx.execute(
        "INSERT INTO webhook_cursors (account_id, endpoint_id, sent_seq, succeeded_at, failing_since, failures,
                                      next_probe_at, healed_at)
         VALUES ($1, $2, $3, 0, 0, 0, 0, 0) ON CONFLICT (account_id, endpoint_id) DO NOTHING",
        &[ctx.account.into(), (&endpoint.base.id).into(), last.into()],
    )?;
    Ok(())
}

/// Gives the active endpoints of an account that have no place in the log one at its end, and removes the places of endpoints
/// that do not exist.
pub fn restore_places(tx: &mut Tx, account: i64) -> Result<()> {
    let sql = "DELETE FROM webhook_cursors WHERE account_id = $1 AND NOT EXISTS (
                   SELECT 1 FROM webhook_endpoints AS own WHERE own.account_id = $1 AND own.id = endpoint_id)";
    tx.execute(sql, &[account.into()])?;
    let sql = "INSERT INTO webhook_cursors (account_id, endpoint_id, sent_seq, succeeded_at, failing_since, failures,
                                            next_probe_at, healed_at)
               SELECT account_id, id, (SELECT coalesce(max(seq), 0) FROM log WHERE log.account_id = $1), 0, 0, 0, 0, 0
               FROM webhook_endpoints WHERE account_id = $1 AND active = 1
               ON CONFLICT (account_id, endpoint_id) DO NOTHING";
    tx.execute(sql, &[account.into()])?;
    Ok(())
}

impl WebhookEndpoint {
    /// Rejects the request if the endpoint is disabled.
    pub fn must_be_active(&self) -> Result<()> {
        if self.active {
            return Ok(());
        }
        Err(Error::new(Code::InvalidTransition, "The endpoint is disabled. Enable it first with \"active\": true."))
    }
}

/// Generates a secret: `whsec_` and 32 random bytes.
fn new_secret() -> Result<String> {
    Ok(format!("whsec_{}", STANDARD.encode(random::bytes::<32>()?)))
}

fn sealed(ctx: &Ctx, column: SecretColumn, id: &str, secret: &str) -> Result<Sealed> {
    let mut sealed = Sealed::Plain(secret.to_string());
    sealed.seal(&ctx.site.vault, &place(ctx.account, column, id))?;
    Ok(sealed)
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 59,
    name: "webhook endpoints",
    sql: "
CREATE TABLE webhook_endpoints (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    description TEXT NOT NULL,
    active BIGINT NOT NULL CHECK (active IN (0, 1)),
    disabled_reason TEXT NOT NULL,
    disabled_at BIGINT NOT NULL,
    secret TEXT NOT NULL,
    old_secret TEXT NOT NULL,
    old_secret_until BIGINT NOT NULL,
    failing_since BIGINT NOT NULL DEFAULT 0,
    next_probe_at BIGINT NOT NULL DEFAULT 0,
    author_type TEXT NOT NULL DEFAULT 'operator',
    author_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_endpoints_created ON webhook_endpoints (account_id, created_at, id);
CREATE INDEX webhook_endpoints_active ON webhook_endpoints (account_id, active, created_at, id);
CREATE TABLE webhook_cursors (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    endpoint_id TEXT NOT NULL,
    sent_seq BIGINT NOT NULL,
    succeeded_at BIGINT NOT NULL,
    failing_since BIGINT NOT NULL,
    failures BIGINT NOT NULL DEFAULT 0,
    next_probe_at BIGINT NOT NULL DEFAULT 0,
    healed_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, endpoint_id)
) STRICT, WITHOUT ROWID;
",
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_chosen_by_name_and_prefix() {
        let endpoint = |events: &[&str]| WebhookEndpoint {
            events: Texts(events.iter().map(ToString::to_string).collect()),
            ..WebhookEndpoint::default()
        };
        for (events, wanted, others) in [
            (&["*"][..], &["invoice.paid", "webhook_endpoint.disabled"][..], &[][..]),
            (&["invoice.*"], &["invoice.paid", "invoice.created"], &["invoices.paid", "quote.created"]),
            (&["invoice.paid", "work"], &["invoice.paid", "work"], &["invoice.paid2", "invoice"]),
            (&["client.*"], &["customer.created", "customer.inactive"], &["client_link.created", "link.created"]),
            (&["client.updated"], &["customer.updated"], &["customer.created"]),
        ] {
            assert!(wanted.iter().all(|event| endpoint(events).wants(event)), "{events:?}");
            assert!(!others.iter().any(|event| endpoint(events).wants(event)), "{events:?}");
        }
        for odd in ["", "**", "*.paid", "invoice*", "invoice.", ".paid", "in voice", "invoice.*.x", "é"] {
            assert!(!is_pattern(odd), "{odd}");
        }
    }
}
