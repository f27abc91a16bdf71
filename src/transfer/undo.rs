//! Undoing an import: removes the records that it created, last first, as long as nothing touched or refers to them.

use engine::app::App;
use engine::authors::Authority;
use engine::call::Call;
use engine::context::{Actor, Ctx};
use engine::error::{Class, Code, Error, Result};
use engine::jobs::{Claimed, Ending, Job};
use engine::record::{Record as _, When};
use engine::records;
use engine::resource::Method;
use engine::tables;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::Tx;

use super::import::{Import, ImportStatus, Objects};
use super::lines::{self, Entry, Outcome, PAYMENT, version_of};
use super::run::{MAX_ERRORS, acting, save_progress};
use super::{old, subject};
use crate::documents::old as documents;
use crate::payments::payment::Payment;
use crate::sales::product::Product;
use crate::subscriptions::deleted_products::NamedProducts;

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
        undo(app, claimed.account, &self.import, &mut |_| {})?;
        Ok(Ending::Done)
    }
}

/// Undoes an import to its end; `seen` is told the number of removed records. Another process may do a part of it.
pub fn undo(app: &App, account: i64, id: &str, seen: &mut dyn FnMut(i64)) -> Result<()> {
    let reader = app.acting_in(account, UndoImport::KIND)?;
    let own = id.to_string();
    let import: Import = app.store.read_now(move |tx| {
        let ctx = reader.reading(tx)?;
        records::find(tx, &ctx, &own)
    })?;
    let caller = acting(app, account, &import)?;
    let mut named = named_products(app, &caller, &import)?;
    loop {
        let (own, id, before) = (caller.clone(), id.to_string(), named.take());
        let (removed, after) = app.store.write_now(account, move |tx| {
            let ctx = own.writing(tx)?;
            let mut named = before.clone();
            if let Some(named) = &mut named {
                named.catch_up(tx, &ctx)?;
            }
            let undone = Undone { import: id.clone(), named };
            Ok::<_, Error>((some(tx, ctx, &undone)?, undone.named))
        })?;
        let Some(removed) = removed else { return Ok(()) };
        seen(removed);
        named = after;
    }
}

/// Returns the products that are in use, if the import made products: read once, apart from the writes.
fn named_products(app: &App, caller: &Actor, import: &Import) -> Result<Option<NamedProducts>> {
    if import.resource != Product::shape().table {
        return Ok(None);
    }
    let own = caller.clone();
    app.store.read_now(move |tx| {
        let ctx = own.reading(tx)?;
        NamedProducts::look(tx, &ctx).map(Some)
    })
}

/// Removes some records; returns how many were removed in all, or `None` if none is left.
fn some(tx: &mut Tx, mut ctx: Ctx, undone: &Undone) -> Result<Option<i64>> {
    let id = undone.import.as_str();
    let before: Import = records::find(tx, &ctx, id)?;
    if before.status != ImportStatus::Undoing {
        return Ok(None);
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
        return Ok(None);
    }
    let mut errors: Vec<Value> = serde_json::from_str(&import.errors.0).unwrap_or_default();
    for mut entry in entries {
        match tx.savepoint(|tx| undone.remove(tx, &ctx, &entry)) {
            Ok(()) => {
                entry.outcome = Outcome::Removed;
                import.removed += i64::from(entry.part != PAYMENT);
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
    Ok(Some(import.removed))
}

/// An import that is undone.
struct Undone {
    import: String,
    /// The products that drafts and subscriptions name, if it made products.
    named: Option<NamedProducts>,
}

fn stays<T>(why: &str) -> Result<T> {
    Err(Error::new(Code::InUse, format!("It stays: {why}.")))
}

impl Undone {
    /// Removes a record that nobody changed and nothing refers to.
    fn remove(&self, tx: &mut Tx, ctx: &Ctx, entry: &Entry) -> Result<()> {
        let Some(version) = version_of(tx, ctx, &entry.table, &entry.id)? else { return Ok(()) };
        if entry.part == PAYMENT {
            return stays("its invoice stays");
        }
        if version != entry.version {
            return stays("it was changed after the import");
        }
        if self.named.as_ref().is_some_and(|named| named.contains(&entry.id)) {
            return stays("rows of a draft or a subscription name it");
        }
        let payment = lines::payment(tx, ctx, &self.import, entry.line)?;
        let payment = payment.filter(|_| entry.table == "invoices");
        check_references(tx, ctx, entry, payment.as_ref().map_or("", |(id, _)| id))?;
        if let Some((payment, version)) = payment {
            remove_payment(tx, ctx, &payment, version)?;
        }
        if documents::withdraw(tx, ctx, &entry.table, &entry.id)?.is_some() {
            return Ok(());
        }
        delete(tx, ctx, entry)
    }
}

/// Rejects a record that others refer to, except for one payment.
fn check_references(tx: &mut Tx, ctx: &Ctx, entry: &Entry, payment: &str) -> Result<()> {
    for table in tables::all().iter().filter(|table| table.stored && !table.fleeting) {
        for field in table.fields.iter().filter(|field| field.rules.refers == entry.table && !field.rules.sent_only) {
            let sql = format!(
                "SELECT count(*) FROM (SELECT 1 FROM {} WHERE account_id = $1 AND \"{1}\" = $2 AND \"{1}\" <> ''
                 AND id <> $3 LIMIT 1) found",
                table.shape.table, field.name
            );
            if tx.int(&sql, &[ctx.account.into(), (&entry.id).into(), payment.into()])? > 0 {
                return stays(&format!("a record in {} refers to it", table.shape.table.replace('_', " ")));
            }
        }
    }
    Ok(())
}

/// Removes the payment of an invoice that is removed with it.
fn remove_payment(tx: &mut Tx, ctx: &Ctx, id: &str, version: i64) -> Result<()> {
    match version_of(tx, ctx, "payments", id)? {
        None => Ok(()),
        Some(now) if now != version => stays("its payment was changed after the import"),
        Some(_) => {
            let payment: Payment = records::find(tx, ctx, id)?;
            records::remove(tx, ctx, &payment)
        }
    }
}

/// Deletes a record by its route.
fn delete(tx: &mut Tx, ctx: &Ctx, entry: &Entry) -> Result<()> {
    if entry.table == Product::shape().table {
        let product: Product = records::find(tx, ctx, &entry.id)?;
        return records::remove(tx, ctx, &product);
    }
    let resource = subject::to_import(&entry.table)?;
    let Some(route) = subject::route_of(resource, Method::Delete) else {
        return stays("such records cannot be deleted");
    };
    let mut parent = None;
    if !resource.shape.parent.is_empty() {
        let sql =
            format!("SELECT \"{}\" FROM {} WHERE account_id = $1 AND id = $2", resource.shape.parent, entry.table);
        let found =
            tx.first(&sql, &[ctx.account.into(), (&entry.id).into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
        parent = Some(found.unwrap_or_default());
    }
    let path = parent.iter().chain([&entry.id]).cloned().collect();
    let answer = (route.handler)(Call { path, early: true, ..Call::default() })?(tx, ctx)?;
    if answer.after.is_some() {
        return stays("other records refer to it");
    }
    match parent {
        Some(invoice) if entry.table == Payment::shape().table => old::restore_assumed_payment(tx, ctx, &invoice),
        _ => Ok(()),
    }
}
