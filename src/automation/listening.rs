//! The flows that listen to an event.

use engine::authors::{Author, AuthorType};
use engine::context::Ctx;
use engine::error::Result;
use engine::record::Kind;
use store::{Row, Tx};

use super::events;

/// A flow that listens to an event.
pub struct Listener {
    /// The flow.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The type of its trigger.
    pub trigger_type: String,
    /// The key of its trigger.
    pub trigger_key: String,
    /// Its conditions, as JSON; empty if they are too long to be read within a transaction.
    pub conditions: String,
    /// How often a step is attempted.
    pub max_attempts: i64,
    /// The version of its definition.
    pub version: i64,
    /// The author of that version.
    pub author: Author,
}

impl Listener {
    fn from_row(row: &Row) -> Result<Listener> {
        Ok(Listener {
            id: row.text(0)?.to_string(),
            name: row.text(1)?.to_string(),
            trigger_type: row.text(2)?.to_string(),
            trigger_key: row.text(3)?.to_string(),
            conditions: row.text(4)?.to_string(),
            max_attempts: row.int(5)?,
            version: row.int(6)?,
            author: Author { kind: AuthorType::from_db(row, 7)?, id: row.text(8)?.to_string() },
        })
    }
}

/// Conditions of more bytes than this are not read within a transaction: hundreds of flows may listen to an event, each with
/// 200 KB of conditions.
const LONG: usize = 16 * 1024;

/// Selects flows with their conditions, unless these are longer than `longest`.
fn select(longest: usize) -> String {
    format!(
        "SELECT id, name, trigger_type, trigger_key,
                CASE WHEN octet_length(conditions) <= {longest} THEN conditions ELSE '' END,
                max_attempts, definition_version, author_type, author_id FROM flows"
    )
}

/// Returns the active flows that listen to an event, without long conditions.
pub fn listeners(tx: &mut Tx, ctx: &Ctx, event: &str) -> Result<Vec<Listener>> {
    listening_to(tx, ctx, event, LONG)
}

/// Returns the active flows that listen to an event, with all their conditions.
pub fn with_conditions(tx: &mut Tx, ctx: &Ctx, event: &str) -> Result<Vec<Listener>> {
    listening_to(tx, ctx, event, i32::MAX as usize)
}

fn listening_to(tx: &mut Tx, ctx: &Ctx, event: &str, longest: usize) -> Result<Vec<Listener>> {
    // Scheduled flows have an empty event name.
    if event.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("{} WHERE account_id = $1 AND listens_to = $2 AND active = 1 ORDER BY id", select(longest));
    tx.all(&sql, &[ctx.account.into(), (&*events::canonical(event)).into()], Listener::from_row)
}

/// Returns a flow in its current state, whether or not it is active, without long conditions.
pub fn listener(tx: &mut Tx, ctx: &Ctx, id: &str) -> Result<Option<Listener>> {
    let sql = format!("{} WHERE account_id = $1 AND id = $2", select(LONG));
    tx.first(&sql, &[ctx.account.into(), id.into()], Listener::from_row)
}
