//! Sender domains.

pub mod check;

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::record::{
    ACTED, ALL, COMPUTED, CREATED, DETAIL, Domain, INPUT, Model, NOWHERE, REQUIRED, UPDATED, Views, When,
};
use engine::records::{self, Work};
use engine::resource::{Method, Resource, Returns};
use engine::tables::Logged;
use engine::{choice, input, record};
use store::{Migration, Tx};

/// Where the details of a verification are shown: not in lists.
const SINGLE: Views = DETAIL.and(CREATED).and(UPDATED).and(ACTED);

choice! {
    /// The verification status of a domain.
    pub enum DomainStatus {
        /// The account has proven that it controls the domain.
        Verified = "verified",
        /// There is no proof yet.
        #[default]
        Pending = "pending",
    }
}

choice! {
    /// The purpose of a domain.
    pub enum DomainType {
        /// Mail is sent from it.
        #[default]
        Sending = "sending",
        /// Mail is received on it.
        Receiving = "receiving",
    }
}

choice! {
    /// Who verified a domain.
    pub enum Verifier {
        /// It is not verified.
        #[default]
        Nobody = "nobody",
        /// A TXT record.
        Dns = "dns",
        /// The operator of the server.
        Operator = "operator",
    }
}

record! {
    /// A domain that mail can be sent from, once it is verified: by a TXT record in its DNS, or by the operator. The TXT
    /// record is checked every hour for the first 30 days, then every day, and when you ask for it. Publish SPF and DKIM
    /// records for the mail server too.
    pub struct EmailDomain = "email_domain" in "email_domains", created_at: ALL, updated_at: ALL, meta: NOWHERE;

    /// Domain; unique in combination with its subdomain.
    domain: Domain = REQUIRED.names().unique(&["subdomain"]).example("\"bakkerij-de-ster.example\"");
    /// Subdomain that mail is sent from, if any.
    subdomain: String = INPUT.at_most(63).example("\"mail\"").changed_to("\"post\"");
    /// `verified` when its TXT record is in place or the operator has verified it, otherwise `pending`. Only one account can
    /// verify a domain.
    status: DomainStatus = COMPUTED.filter().any("all").example("\"pending\"");
    /// `sending` or `receiving`.
    r#type: DomainType = INPUT.example("\"sending\"");
    /// Name of the TXT record that verifies the domain.
    txt_name: String = COMPUTED.shown(SINGLE);
    /// Value of that record.
    txt_value: String = COMPUTED.shown(SINGLE);
    /// `dns` or `operator`; `nobody` while it is not verified.
    verified_by: Verifier = COMPUTED.shown(SINGLE);
    /// When the TXT record was last checked, on the machine's clock.
    checked_at: When = COMPUTED.nullable().shown(SINGLE);
    /// What the last check found.
    check_result: String = COMPUTED.at_most(500).shown(SINGLE);
    /// Since when the TXT record of a verified domain has been missing.
    missing_since: When = COMPUTED.nullable().shown(SINGLE);
    /// The domain with its subdomain, in lower case.
    host: String = COMPUTED.shown(NOWHERE);
}

impl Model for EmailDomain {
    const MOST: i64 = 1000;

    fn before_save(&mut self, _: &mut Tx, ctx: &Ctx, before: Option<&Self>) -> Result<()> {
        if self.base.id.is_empty() {
            self.base.id = ctx.new_id();
        }
        let (domain, subdomain) = (self.domain.0.as_str(), self.subdomain.as_str());
        let host = if subdomain.is_empty() { domain.to_string() } else { format!("{subdomain}.{domain}") };
        self.host = host.to_lowercase();
        self.txt_name = format!("_kantoor.{}", self.host);
        // The id is unique to this account and server, so the record proves nothing for another.
        self.txt_value = format!("kantoor-verification={}", self.base.id);
        if before.is_some_and(|before| before.host != self.host) {
            (self.status, self.verified_by) = (DomainStatus::Pending, Verifier::Nobody);
            (self.checked_at, self.missing_since) = (When(None), When(None));
            self.check_result = String::new();
        }
        Ok(())
    }
}

/// The resource of domains; in the contract they are read-only.
pub fn resource() -> Resource {
    Resource::of::<EmailDomain>("E-mail domains", "settings", MIGRATIONS)
        .guarded()
        .all::<EmailDomain>()
        .managed::<EmailDomain>()
        .delete::<EmailDomain>()
        .extension()
        .route(Method::Post, "/{id}/verify", "Check the TXT record of a domain now", verify)
        .returns(Returns::Item(ACTED))
        .extension()
        // Checks without a result leave no entry.
        .logged(Logged::Except(&["checked_at", "check_result", "missing_since"]))
}

/// `POST /v1/email-domains/{id}/verify`
fn verify(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let domain: EmailDomain = records::find_in_path(tx, ctx, &call)?;
        let (call, warnings) = (call.clone(), warnings.clone());
        Ok(Answer::after(move |app, _| {
            let found = check::look_up(app, &domain.txt_name);
            let (call, warnings, name) = (call.clone(), warnings.clone(), domain.txt_name.clone());
            Ok(Box::new(move |tx, ctx| {
                let before: EmailDomain = records::find_to_change(tx, ctx, &call)?;
                let domain = check::apply(tx, ctx, &before, &name, &found)?;
                if domain.check_result == check::TAKEN {
                    return Err(Error::new(Code::Duplicate, check::TAKEN));
                }
                Ok(Answer::record(ctx, &domain, ACTED).with_texts("warnings", &warnings))
            }))
        }))
    }))
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 20,
    name: "e-mail domains",
    sql: "
CREATE TABLE email_domains (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    domain TEXT NOT NULL,
    subdomain TEXT NOT NULL,
    status TEXT NOT NULL,
    type TEXT NOT NULL,
    host TEXT NOT NULL DEFAULT '',
    txt_name TEXT NOT NULL DEFAULT '',
    txt_value TEXT NOT NULL DEFAULT '',
    verified_by TEXT NOT NULL DEFAULT 'nobody',
    checked_at BIGINT NOT NULL DEFAULT 0,
    check_result TEXT NOT NULL DEFAULT '',
    missing_since BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX email_domains_created ON email_domains (account_id, created_at, id);
CREATE INDEX email_domains_status ON email_domains (account_id, status, created_at, id);
CREATE UNIQUE INDEX email_domains_once ON email_domains (account_id, domain, subdomain);
CREATE UNIQUE INDEX email_domains_verified ON email_domains (host) WHERE verified_by <> 'nobody';
",
}];
