//! Undoing an import: removes the records that it created, last first, as long as nothing touched or refers to them.

use engine::app::App;
use engine::authors::Authority;
use engine::call::Call;
use engine::context::Ctx;
use engine::error::{Class, Code, Error, Result};
use engine::jobs::{Claimed, Ending, Job};
use engine::record::When;
use engine::records;
use engine::resource::Method;
use engine::tables;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::Tx;

use super::import::{Import, ImportStatus, Objects};
use super::lines::{self, Entry, Outcome};
use super::run::{MAX_ERRORS, acting, save_progress, version_of};
use super::subject;
use crate::documents::old as documents;

/// Number of records per transaction.
const TOGETHER: usize = 100;

/// The job that undoes an import.
#[derive(Serialize, Deserialize)]
pub struct UndoImport {
    /// The import.
    pub import: String,
}

impl Job for UndoImport {
    const KIND: &'static str = "import_undo";

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let reader = app.acting_in(claimed.account, Self::KIND)?;
        let id = self.import.clone();
        let import: Import = app.store.read_now(move |tx| {
            let ctx = reader.reading(tx)?;
            records::find(tx, &ctx, &id)
        })?;
        let caller = acting(app, claimed.account, &import)?;
        loop {
            let (own, id) = (caller.clone(), self.import.clone());
            let is_done = app.store.write_now(claimed.account, move |tx| {
                let ctx = own.writing(tx)?;
                some(tx, ctx, &id)
            })?;
            if is_done {
                return Ok(Ending::Done);
            }
        }
    }
}

/// Removes some records; returns whether none is left.
fn some(tx: &mut Tx, mut ctx: Ctx, id: &str) -> Result<bool> {
    let before: Import = records::find(tx, &ctx, id)?;
    if before.status != ImportStatus::Undoing {
        return Ok(true);
    }
    let mut import = before.clone();
    let allowed = match import.authority(tx, &ctx)? {
        Authority::Ended(why) => Err(format!("Undoing it stopped: {why}.")),
        authority => {
            ctx.key = authority.key();
            subject::check_writes(&ctx, subject::to_import(&import.resource)?).map_err(|error| error.message)
        }
    };
    let entries = match &allowed {
        Ok(()) => lines::some(tx, &ctx, id, Outcome::Created, TOGETHER)?,
        Err(_) => Vec::new(),
    };
    if entries.is_empty() {
        import.status = ImportStatus::Undone;
        import.failure = allowed.err().unwrap_or_default();
        import.ended_at = When(Some(ctx.now));
        records::change(tx, &ctx, &before, &mut import, "undone")?;
        return Ok(true);
    }
    let mut errors: Vec<Value> = serde_json::from_str(&import.errors.0).unwrap_or_default();
    for mut entry in entries {
        match tx.savepoint(|tx| remove(tx, &ctx, &entry)) {
            Ok(()) => {
                entry.outcome = Outcome::Removed;
                import.removed += 1;
            }
            Err(error) if error.code.declared().class == Class::Internal => return Err(error),
            Err(error) => {
                entry.outcome = Outcome::Kept;
                entry.message = error.message;
                if errors.len() < 2 * MAX_ERRORS {
                    errors.push(json!({"line": entry.line, "id": entry.id, "message": entry.message}));
                }
            }
        }
        lines::end(tx, &ctx, id, &entry)?;
    }
    import.errors = Objects::from(errors);
    save_progress(tx, &ctx, &import)?;
    Ok(false)
}

/// Removes a record that nobody changed and nothing refers to.
fn remove(tx: &mut Tx, ctx: &Ctx, entry: &Entry) -> Result<()> {
    let Some(version) = version_of(tx, ctx, &entry.table, &entry.id)? else { return Ok(()) };
    let stays = |why: &str| Err(Error::new(Code::InUse, format!("It stays: {why}.")));
    if version != entry.version {
        return stays("it was changed after the import");
    }
    for table in tables::all().iter().filter(|table| !table.fleeting) {
        for field in table.fields.iter().filter(|field| field.rules.refers == entry.table && !field.rules.sent_only) {
            let sql = format!(
                "SELECT count(*) FROM (SELECT 1 FROM {} WHERE account_id = $1 AND \"{1}\" = $2 AND \"{1}\" <> '' LIMIT 1) found",
                table.shape.table, field.name
            );
            if tx.int(&sql, &[ctx.account.into(), (&entry.id).into()])? > 0 {
                return stays(&format!("a record in {} refers to it", table.shape.table.replace('_', " ")));
            }
        }
    }
    if documents::withdraw(tx, ctx, &entry.table, &entry.id)?.is_some() {
        return Ok(());
    }
    let resource = subject::to_import(&entry.table)?;
    let Some(route) = subject::route_of(resource, Method::Delete) else {
        return stays("such records cannot be deleted");
    };
    let mut path = vec![entry.id.clone()];
    if !resource.shape.parent.is_empty() {
        let sql =
            format!("SELECT \"{}\" FROM {} WHERE account_id = $1 AND id = $2", resource.shape.parent, entry.table);
        let parent =
            tx.first(&sql, &[ctx.account.into(), (&entry.id).into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
        path.insert(0, parent.unwrap_or_default());
    }
    let answer = (route.handler)(Call { path, early: true, ..Call::default() })?(tx, ctx)?;
    if answer.after.is_some() {
        return stays("other records refer to it");
    }
    Ok(())
}
