//! A file that was imported before: importing it once more would create everything twice.

use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::records;
use serde_json::{Value, json};
use store::Tx;

use super::import::{IMPORTED_BEFORE, Import, ImportStatus};

/// Returns the last import of the same content into the same resource that made records which were not removed again.
pub fn earlier(tx: &mut Tx, ctx: &Ctx, resource: &str, sha256: &str) -> Result<Option<Import>> {
    // Of the last imports: nobody runs a file again after hundreds of others.
    let sql = "SELECT recent.id FROM (SELECT id, file_id, resource, created, removed, created_at FROM imports
                 WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT 500) AS recent CROSS JOIN files content
               WHERE recent.resource = $2 AND recent.created > recent.removed AND content.account_id = $1
                 AND content.id = recent.file_id AND content.sha256 = $3
               ORDER BY recent.created_at DESC, recent.id DESC LIMIT 1";
    let values = [ctx.account.into(), resource.into(), sha256.into()];
    let id = tx.first(sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    id.map(|id| records::find(tx, ctx, &id)).transpose()
}

/// Says when that was.
pub fn sentence(ctx: &Ctx, earlier: &Import) -> String {
    let day = earlier.started_at.0.unwrap_or(ctx.now).date(&ctx.zone);
    let (id, made) = (&earlier.base.id, earlier.created - earlier.removed);
    let (processed, lines) = (earlier.processed, earlier.lines);
    match earlier.status {
        ImportStatus::Running => format!(
            "The import {id} of the same file was started on {day} and has not ended: {processed} of {lines} lines are processed."
        ),
        ImportStatus::Undoing => format!(
            "The same file was imported on {day}, by the import {id}, and undoing that has not ended: of what it created, {made} are still there. Running this import creates them once more."
        ),
        _ => format!(
            "The same file was imported on {day}, by the import {id}; of what it created, {made} are still there. Running this import creates them once more."
        ),
    }
}

/// Returns the warning of a check.
pub fn warning(ctx: &Ctx, earlier: &Import) -> Value {
    json!({"line": 0, "column": "", "field": "", "code": IMPORTED_BEFORE, "message": sentence(ctx, earlier)})
}

/// Rejects an import that would create everything once more, unless the caller wants that.
pub fn check(tx: &mut Tx, ctx: &Ctx, import: &Import, sha256: &str, wanted: bool) -> Result<()> {
    if wanted || !import.doubles() {
        return Ok(());
    }
    match earlier(tx, ctx, &import.resource, sha256)? {
        Some(earlier) => {
            let day = earlier.started_at.0.unwrap_or(ctx.now).date(&ctx.zone);
            let message = format!(
                "The same file was imported before, on {day}, by the import {}. Send `again` to create its records once more.",
                earlier.base.id
            );
            Err(Error::new(Code::InvalidTransition, message))
        }
        None => Ok(()),
    }
}
