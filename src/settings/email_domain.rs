//! Domains that mail may come from.

use engine::record::{ALL, Domain, INPUT, Model, NOWHERE, REQUIRED};
use engine::resource::Resource;
use engine::{choice, record};
use store::Migration;

choice! {
    /// Whether mail from a domain will be believed.
    pub enum DomainStatus {
        /// Its records in the DNS are in place.
        Verified = "verified",
        /// They are still to be made.
        #[default]
        Pending = "pending",
    }
}

choice! {
    /// What a domain is for.
    pub enum DomainType {
        /// Mail is sent from it.
        #[default]
        Sending = "sending",
        /// Mail is received on it.
        Receiving = "receiving",
    }
}

record! {
    /// A domain that mail can be sent from. You set it to verified when its DNS records (SPF, DKIM) are in place.
    pub struct EmailDomain = "email_domain" in "email_domains", created_at: ALL, updated_at: ALL, meta: NOWHERE;

    /// Domain; unique in combination with its subdomain.
    domain: Domain = REQUIRED.unique(&["subdomain"]).example("\"bakkerij-de-ster.example\"");
    /// Subdomain that mail is sent from, if any.
    subdomain: String = INPUT.at_most(63).example("\"mail\"");
    /// `verified` when its DNS records are in place, otherwise `pending`.
    status: DomainStatus = INPUT.filter().any("all").example("\"pending\"");
    /// `sending` or `receiving`.
    r#type: DomainType = INPUT.example("\"sending\"");
}

impl Model for EmailDomain {}

/// Domains and their routes; the contract reads them.
pub fn resource() -> Resource {
    Resource::of::<EmailDomain>("E-mail domains", "settings", MIGRATIONS)
        .all::<EmailDomain>()
        .managed::<EmailDomain>()
        .delete::<EmailDomain>()
        .extension()
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 26,
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
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX email_domains_created ON email_domains (account_id, created_at, id);
CREATE INDEX email_domains_status ON email_domains (account_id, status, created_at, id);
CREATE UNIQUE INDEX email_domains_once ON email_domains (account_id, domain, subdomain);
",
}];
