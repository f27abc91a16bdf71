//! The author of a flow: each version has one, whoever saved it or adopted it later.

use std::collections::HashMap;

use engine::authors::{Author, AuthorType, Authority};
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::record::Kind;
use store::Tx;

/// The authors that a transaction has read, and the names of their flows, by flow and version.
#[derive(Default)]
struct Known(HashMap<(String, i64), (Author, String)>);

/// Returns what the author of a version of a flow may do now.
pub fn authority(tx: &mut Tx, ctx: &Ctx, flow: &str, version: i64) -> Result<Authority> {
    find(tx, ctx, flow, version)?.0.authority(tx, ctx)
}

/// Whether the author of the newest version of a flow, which may have been deleted, still has a scope.
pub(crate) fn may(tx: &mut Tx, ctx: &Ctx, flow: &str, scope: &str) -> Result<bool> {
    let sql = "SELECT coalesce(max(version), 0) FROM flow_definitions WHERE account_id = $1 AND flow_id = $2";
    let version = tx.int(sql, &[ctx.account.into(), flow.into()])?;
    Ok(version == 0 || authority(tx, ctx, flow, version)?.may(scope))
}

/// Returns the author of a version of a flow, and the name of the flow.
pub fn find(tx: &mut Tx, ctx: &Ctx, flow: &str, version: i64) -> Result<(Author, String)> {
    let of = (flow.to_string(), version);
    if let Some(known) = tx.memory::<Known>("flow_definitions", ctx.account).0.get(&of) {
        return Ok(known.clone());
    }
    let sql = "SELECT author_type, author_id, coalesce((SELECT name FROM flows WHERE flows.account_id = $1 AND flows.id = $2), '')
               FROM flow_definitions WHERE account_id = $1 AND flow_id = $2 AND version = $3";
    let found = tx.first(sql, &[ctx.account.into(), (&of.0).into(), of.1.into()], |row| {
        let author = Author { kind: AuthorType::from_db(row, 0)?, id: row.text(1)?.to_string() };
        Ok::<_, Error>((author, row.text(2)?.to_string()))
    })?;
    let found = found.unwrap_or_default();
    tx.memory::<Known>("flow_definitions", ctx.account).0.insert(of, found.clone());
    Ok(found)
}
