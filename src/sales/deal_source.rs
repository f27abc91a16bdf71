//! Sources of deals.

use engine::context::Ctx;
use engine::error::Result;
use engine::record::{INPUT, Model, NOWHERE, REQUIRED};
use engine::resource::Resource;
use engine::{record, records};
use store::{Migration, Tx};

record! {
    /// Where deals come from: the website, a referral, a trade fair.
    pub struct DealSource = "deal_source" in "deal_sources", order: "order", meta: NOWHERE;

    /// Name.
    name: String = REQUIRED.names().example("\"Website\"");
    /// Sort position.
    order: i64 = INPUT.between(0, 1_000_000).resets_to("0").example("1");
}

impl Model for DealSource {
    const MOST: i64 = 1000;
}

/// The resource of deal sources; in the contract they are read-only.
pub fn resource() -> Resource {
    Resource::of::<DealSource>("Deal sources", "deals", MIGRATIONS)
        .setting()
        .all::<DealSource>()
        .managed::<DealSource>()
        .delete::<DealSource>()
        .extension()
}

/// Creates the default sources.
pub fn defaults(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    for (order, name) in (1..).zip(["Website", "Referral", "Telephone", "Advertisement", "Other"]) {
        let mut source = DealSource { name: name.into(), order, ..DealSource::default() };
        records::add(tx, ctx, &mut source)?;
    }
    Ok(())
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 29,
    name: "deal sources",
    sql: "
CREATE TABLE deal_sources (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    \"order\" BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX deal_sources_order ON deal_sources (account_id, \"order\", id);
",
}];
