//! Sender domains.

use engine::record::{ALL, Domain, INPUT, Model, NOWHERE, REQUIRED};
use engine::resource::Resource;
use engine::{choice, record};
use store::Migration;

choice! {
    /// The verification status of a domain.
    pub enum DomainStatus {
        /// Its DNS records are in place.
        Verified = "verified",
        /// Its DNS records are not in place yet.
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

/// The resource of domains; in the contract they are read-only.
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
