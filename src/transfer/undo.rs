//! Undoing an import: removes the records that it created, last first, as long as nothing touched or refers to them.

use std::collections::{BTreeMap, HashMap};

use engine::app::App;
use engine::authors::Authority;
use engine::call::Call;
use engine::context::{Actor, Ctx};
use engine::error::{Class, Code, Error, Result};
use engine::jobs::{Claimed, Ending, Job};
use engine::record::{Record as _, When};
use engine::records::{self, Reference, RemoveTogether, Standing};
use engine::resource::Method;
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
    let (mut named, mut last) = (named_products(app, &caller, &import)?, i64::MAX);
    loop {
        let (own, id, before) = (caller.clone(), id.to_string(), named.take());
        let (done, after) = app.store.write_now(account, move |tx| {
            let ctx = own.writing(tx)?;
            let mut named = before.clone();
            if let Some(named) = &mut named {
                named.catch_up(tx, &ctx)?;
            }
            let undone = Undone { import: id.clone(), named, last };
            Ok::<_, Error>((some(tx, ctx, &undone)?, undone.named))
        })?;
        let Some(done) = done else { return Ok(()) };
        seen(done.removed);
        (named, last) = (after, done.line);
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

/// How far an undo is.
struct Progress {
    /// How many records were removed in all.
    removed: i64,
    /// The last line that was looked at, from the end.
    line: i64,
}

/// Removes some records; returns `None` if none is left.
fn some(tx: &mut Tx, mut ctx: Ctx, undone: &Undone) -> Result<Option<Progress>> {
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
        Ok(()) => undone.next(tx, &ctx)?,
        Err(_) => Vec::new(),
    };
    let Some(line) = entries.last().map(|entry| entry.line) else {
        import.status = ImportStatus::Undone;
        import.failure = allowed.err().unwrap_or_default();
        import.ended_at = When(Some(ctx.now));
        records::change(tx, &ctx, &before, &mut import, "undone")?;
        return Ok(None);
    };
    let found = Found::of(tx, &ctx, &entries)?;
    let mut errors: Vec<Value> = serde_json::from_str(&import.errors.0).unwrap_or_default();
    let together = |entry: &Entry| undone.goes_together(&found, entry);
    for alike in entries.chunk_by(|one, next| one.table == next.table && together(one) && together(next)) {
        if undone.remove_together(tx, &ctx, &found, alike)? {
            import.removed += alike.len() as i64;
            continue;
        }
        for entry in alike {
            match undone.remove_one(tx, &ctx, &found, entry)? {
                None => import.removed += i64::from(entry.part != PAYMENT),
                Some(why) if errors.len() < 2 * MAX_ERRORS => {
                    errors.push(json!({"line": entry.line, "id": entry.id, "message": why}));
                }
                Some(_) => {}
            }
        }
    }
    import.errors = Objects::from(errors);
    save_progress(tx, &ctx, &import)?;
    Ok(Some(Progress { removed: import.removed, line }))
}

/// What is known of the records of some entries before the first of them is removed: which of them others refer to. A removal
/// takes references away and adds none.
struct Found {
    /// By id.
    standing: HashMap<String, Standing>,
    /// By table, what removes many of its records, if something does.
    together: HashMap<String, RemoveTogether>,
}

impl Found {
    fn of(tx: &mut Tx, ctx: &Ctx, entries: &[Entry]) -> Result<Found> {
        let mut ids: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for entry in entries {
            ids.entry(&entry.table).or_default().push(&entry.id);
        }
        let mut found = Found { standing: HashMap::new(), together: HashMap::new() };
        for (table, ids) in ids {
            found.standing.extend(records::standing(tx, ctx, table, &ids)?);
            let remove = subject::to_import(table)?.remove_together;
            found.together.extend(remove.map(|remove| (table.to_string(), remove)));
        }
        Ok(found)
    }
}

/// An import that is undone.
struct Undone {
    import: String,
    /// The products that drafts and subscriptions name, if it made products.
    named: Option<NamedProducts>,
    /// The line up to which records may be left.
    last: i64,
}

fn stays<T>(why: &str) -> Result<T> {
    Err(Error::new(Code::InUse, format!("It stays: {why}.")))
}

impl Undone {
    /// Returns the entries of the next records. Those behind them are not read again each time: the database keeps what they
    /// were for a while.
    fn next(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Vec<Entry>> {
        let entries = lines::some(tx, ctx, &self.import, Outcome::Created, (self.last, TOGETHER))?;
        match entries.is_empty() && self.last < i64::MAX {
            // A payment may have been made again meanwhile.
            true => lines::some(tx, ctx, &self.import, Outcome::Created, (i64::MAX, TOGETHER)),
            false => Ok(entries),
        }
    }

    /// Whether a record can be removed in the same statements as others: nobody changed it, nothing refers to it, and its
    /// deletion does nothing else.
    fn goes_together(&self, found: &Found, entry: &Entry) -> bool {
        let is_free = |own: &Standing| own.version == entry.version && own.referred.is_none();
        found.standing.get(&entry.id).is_some_and(is_free)
            && found.together.contains_key(&entry.table)
            && entry.part != PAYMENT
            && !self.is_named(entry)
    }

    /// Removes records of one table that go together; returns false if they have to be removed one by one.
    fn remove_together(&self, tx: &mut Tx, ctx: &Ctx, found: &Found, alike: &[Entry]) -> Result<bool> {
        let first = alike.first().filter(|first| self.goes_together(found, first));
        let Some(remove) = first.and_then(|first| found.together.get(&first.table)) else { return Ok(false) };
        let records: Vec<(&str, i64)> = alike.iter().map(|entry| (entry.id.as_str(), entry.version)).collect();
        match tx.savepoint(|tx| remove(tx, ctx, &records)) {
            Ok(()) => {}
            Err(error) if error.code.declared().class == Class::Internal => return Err(error),
            Err(_) => return Ok(false),
        }
        for entry in alike {
            lines::end(tx, ctx, &self.import, entry, Outcome::Removed, "")?;
        }
        Ok(true)
    }

    /// Removes the record of an entry; returns why it stays, if it does.
    fn remove_one(&self, tx: &mut Tx, ctx: &Ctx, found: &Found, entry: &Entry) -> Result<Option<String>> {
        let (outcome, why) = match tx.savepoint(|tx| self.remove(tx, ctx, found, entry)) {
            Ok(()) => (Outcome::Removed, None),
            Err(error) if error.code.declared().class == Class::Internal => return Err(error),
            Err(error) => (Outcome::Kept, Some(error.message)),
        };
        lines::end(tx, ctx, &self.import, entry, outcome, why.as_deref().unwrap_or_default())?;
        Ok(why)
    }

    /// Whether rows of a draft or lines of a subscription name the record, a product.
    fn is_named(&self, entry: &Entry) -> bool {
        self.named.as_ref().is_some_and(|named| named.contains(&entry.id))
    }

    /// Removes a record that nobody changed and nothing refers to.
    fn remove(&self, tx: &mut Tx, ctx: &Ctx, found: &Found, entry: &Entry) -> Result<()> {
        let Some(version) = version_of(tx, ctx, &entry.table, &entry.id)? else { return Ok(()) };
        if entry.part == PAYMENT {
            return stays("its invoice stays");
        }
        if version != entry.version {
            return stays("it was changed after the import");
        }
        if self.is_named(entry) {
            return stays("rows of a draft or a subscription name it");
        }
        let payment = match entry.table.as_str() {
            "invoices" => lines::payment(tx, ctx, &self.import, entry.line)?,
            _ => None,
        };
        if let Some(first) = found.standing.get(&entry.id).and_then(|own| own.referred) {
            check_references(tx, ctx, entry, first, payment.as_ref().map_or("", |(id, _)| id))?;
        }
        if let Some((payment, version)) = payment {
            remove_payment(tx, ctx, &payment, version)?;
        }
        if documents::withdraw(tx, ctx, &entry.table, &entry.id)?.is_some() {
            return Ok(());
        }
        delete(tx, ctx, entry)
    }
}

/// Rejects a record that others refer to, except for one payment; `first` is the first of the references that was there.
fn check_references(tx: &mut Tx, ctx: &Ctx, entry: &Entry, first: usize, payment: &str) -> Result<()> {
    let all = records::references(&entry.table);
    for Reference { by, field } in all.iter().skip(first).filter(|reference| !reference.by.fleeting) {
        let table = by.shape.table;
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE account_id = $1 AND \"{field}\" = $2 AND \"{field}\" <> ''
             AND id <> $3 LIMIT 1) found"
        );
        if tx.int(&sql, &[ctx.account.into(), (&entry.id).into(), payment.into()])? > 0 {
            return stays(&format!("a record in {} refers to it", table.replace('_', " ")));
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
