//! A check in progress: tries every line of a file. Lines are also run in a transaction that is rolled back, so that a line that
//! the check calls valid can be imported.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use engine::app::App;
use engine::context::Actor;
use engine::error::{Code, Error, Result};
use engine::json::Json;
use engine::record::FieldInfo;
use serde_json::{Value, json};
use sheets::Line;
use store::Tx;

use super::built::Built;
use super::import::Import;
use super::make::{is_ours, make};
use super::mapping::{ID, Plan};
use super::sums::{SUMMED, Sums, add_up};
use super::{old, subject};
use crate::reading::archive::Archive;

/// The code of a value that another line or another record has.
const DUPLICATE: &str = "duplicate";
/// Number of problems that are listed, and of warnings.
pub const MAX_PROBLEMS: usize = 100;
/// Number of records that are shown before the import runs.
const PREVIEWED: usize = 5;
/// Number of lines that are tried in one transaction, and of their bytes: others wait for it.
const TOGETHER: usize = 50;
const TOGETHER_BYTES: usize = 1024 * 1024;
/// Number of values that are looked up together.
const LOOKED_UP: usize = 500;
/// The values of a field in the file, with their lines and by what those are matched. There may be a million of them, so only their
/// hashes are kept.
type SeenValues = HashMap<u64, (u32, u64)>;

/// The records that the database has nothing to say about, except for what they refer to and what must be unique. Trying
/// a hundred thousand of them would take as long as importing them.
const PLAIN: &[&str] = &["clients", "suppliers", "products"];

/// A check in progress.
pub struct Checking<'c> {
    app: &'c App,
    caller: &'c Actor,
    plan: Arc<Plan>,
    import: &'c Import,
    pdfs: Option<&'c mut Archive>,
    /// The fields that must be unique, with the values of the file, their lines and by what those are matched.
    unique: Vec<(&'static FieldInfo, SeenValues)>,
    /// Hashes these values, with keys of this check.
    hashes: RandomState,
    /// Whether lines are tried in the database.
    tries: bool,
    /// Lines to try, and how many bytes they have.
    untried: Vec<(usize, Built)>,
    untried_bytes: usize,
    /// Values that no other record may have.
    wanted: Vec<Wanted>,
    /// The lines with a problem.
    pub bad: HashSet<usize>,
    /// The number of problems.
    pub problem_count: i64,
    /// The first problems.
    pub problems: Vec<Value>,
    /// The number of warnings.
    pub warning_count: i64,
    /// The first warnings.
    pub warnings: Vec<Value>,
    /// The first records.
    pub preview: Vec<Value>,
    /// The sums of the amounts.
    pub sums: Sums,
}

/// A value to look up in the database.
#[derive(Clone)]
struct Wanted {
    line: usize,
    field: &'static str,
    table: &'static str,
    value: String,
}

fn text(built: &Built, name: &str) -> String {
    match built.body.iter().find(|(own, _)| own == name) {
        Some((_, Json::Text(text))) => text.clone(),
        _ => String::new(),
    }
}

impl<'c> Checking<'c> {
    /// Starts a check.
    pub fn blank(
        app: &'c App,
        caller: &'c Actor,
        plan: Arc<Plan>,
        import: &'c Import,
        pdfs: Option<&'c mut Archive>,
    ) -> Checking<'c> {
        let is_unique = |field: &&'static FieldInfo| field.rules.is_unique() && field.is("string");
        let unique = subject::fields(plan.resource).filter(is_unique).map(|field| (field, HashMap::new())).collect();
        let mut sums = BTreeMap::new();
        if old::is_document(plan.resource) {
            sums.extend(SUMMED.iter().filter(|name| plan.has(name)).map(|name| (*name, 0)));
        }
        let is_plain = PLAIN.contains(&plan.resource.shape.table);
        let refers = subject::fields(plan.resource).any(|field| !field.rules.refers.is_empty() && plan.has(field.name));
        let tries = !is_plain || refers || !import.match_by.is_empty() || plan.has("custom_fields") || plan.has(ID);
        Checking {
            app,
            caller,
            plan,
            import,
            pdfs,
            unique,
            hashes: RandomState::new(),
            tries,
            untried: Vec::new(),
            untried_bytes: 0,
            wanted: Vec::new(),
            bad: HashSet::new(),
            problem_count: 0,
            problems: Vec::new(),
            warning_count: 0,
            warnings: Vec::new(),
            preview: Vec::new(),
            sums,
        }
    }

    /// Checks a line.
    pub fn take(&mut self, line: Line) -> Result<()> {
        self.untried_bytes += line.weight();
        let mut built = self.plan.build_line(&line);
        if self.preview.len() < PREVIEWED {
            let mut shown = Vec::new();
            if Json::Object(built.body.clone()).write(&mut shown).is_ok() {
                self.preview.push(serde_json::from_slice(&shown).unwrap_or_default());
            }
        }
        add_up(&mut self.sums, &built);
        if let Some(why) = &built.left_out {
            let field = if old::is_document(self.plan.resource) { "payment_status" } else { "status" };
            self.problem(line.number, field, "", &lowered(why));
            return Ok(());
        }
        if let Some(pdfs) = &mut self.pdfs
            && let Err(wrong) = old::original(pdfs, &built, true)?
        {
            built.faults.add("pdf", wrong);
        }
        match self.plan.prepare(&built).map(drop) {
            // What a new record lacks, the existing one may have: only the database knows which it is.
            Err(_) if !text(&built, &self.import.match_by).is_empty() || !built.source_id.is_empty() => {
                self.untried.push((line.number, built));
            }
            Err(error) => self.failed(line.number, &error),
            Ok(()) => {
                self.compare(line.number, &built);
                if self.tries && !self.bad.contains(&line.number) {
                    self.untried.push((line.number, built));
                }
            }
        }
        let is_enough = self.untried.len() >= TOGETHER || self.wanted.len() >= LOOKED_UP;
        if is_enough || self.untried_bytes >= TOGETHER_BYTES { self.ask() } else { Ok(()) }
    }

    fn failed(&mut self, line: usize, error: &Error) {
        if error.faults.is_empty() {
            // A value that another record has: the message names the field.
            let mut names = self.unique.iter().map(|(field, _)| field.name);
            let field = names.find(|name| error.message.contains(name)).unwrap_or_default();
            self.problem(line, field, "", &error.message);
        }
        for fault in &error.faults {
            self.problem(line, &fault.field, fault.wrong.code.wire(), &fault.wrong.message);
        }
    }

    fn problem(&mut self, line: usize, field: &str, code: &str, message: &str) {
        self.problem_count += 1;
        self.bad.insert(line);
        if self.problems.len() < MAX_PROBLEMS {
            let shown = self.shown(line, field, code, message);
            self.problems.push(shown);
        }
    }

    fn shown(&self, line: usize, field: &str, code: &str, message: &str) -> Value {
        let column: String = self.plan.column_of(field).chars().take(200).collect();
        json!({"line": line, "column": column, "field": field, "code": code, "message": message})
    }

    /// Compares the values that must be unique with those of earlier lines, and collects what the database knows.
    fn compare(&mut self, line: usize, built: &Built) {
        let mut twice = Vec::new();
        let (table, match_by) = (self.plan.resource.shape.table, self.import.match_by.as_str());
        let matched = text(built, match_by).to_lowercase();
        // Equal texts have equal hashes, and that of nothing is that of no other text of the file.
        let (nothing, matched) = (self.hashes.hash_one(""), self.hashes.hash_one(matched));
        for (field, seen) in &mut self.unique {
            let value = text(built, field.name);
            if value.is_empty() {
                continue;
            }
            let number = u32::try_from(line).unwrap_or(u32::MAX);
            let earlier = seen.insert(self.hashes.hash_one((&built.parent, &value)), (number, matched));
            // A line that is about the same record as an earlier one has the same values.
            let is_same = |own: u64| !match_by.is_empty() && own != nothing && own == matched;
            if let Some((earlier, _)) = earlier.filter(|(_, own)| !is_same(*own)) {
                twice.push((field.name, earlier));
            }
            if !self.tries {
                self.wanted.push(Wanted { line, field: field.name, table, value });
            }
        }
        for (field, earlier) in twice {
            self.problem(line, field, DUPLICATE, &format!("is the same as on line {earlier}"));
        }
    }

    /// Asks the database about the lines that were collected.
    pub fn ask(&mut self) -> Result<()> {
        self.untried_bytes = 0;
        self.look_up()?;
        self.attempt()
    }

    /// Runs the collected lines and rolls everything back.
    fn attempt(&mut self) -> Result<()> {
        let lines = Arc::new(std::mem::take(&mut self.untried));
        if lines.is_empty() {
            return Ok(());
        }
        let (own, plan, import) = (self.caller.clone(), self.plan.clone(), self.import.clone());
        let (failed, doubted) = self.app.store.write_now(self.caller.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            let (mut failed, mut doubted) = (Vec::new(), Vec::new());
            let undone = tx.savepoint(|tx| {
                for (line, built) in lines.iter() {
                    let number = i64::try_from(*line).unwrap_or(i64::MAX);
                    match tx.savepoint(|tx: &mut Tx| make(tx, &ctx, &plan, &import, number, built, None)) {
                        Err(error) if is_ours(&error) => return Err(error),
                        Err(error) => failed.push((*line, error)),
                        Ok(made) if made.doubts.0.is_empty() => {}
                        Ok(made) => doubted.push((*line, made.doubts)),
                    }
                }
                Err::<(), Error>(Error::new(Code::PreconditionFailed, "Nothing is kept of a check."))
            });
            match undone {
                Err(error) if error.code != Code::PreconditionFailed => Err(error),
                _ => Ok((failed, doubted)),
            }
        })?;
        for (line, error) in failed {
            self.failed(line, &error);
        }
        for (line, doubts) in doubted {
            for doubt in doubts.0 {
                self.warning_count += 1;
                if self.warnings.len() < MAX_PROBLEMS {
                    let shown = self.shown(line, &doubt.field, doubt.wrong.code.wire(), &doubt.wrong.message);
                    self.warnings.push(shown);
                }
            }
        }
        Ok(())
    }

    /// Looks up the collected values.
    fn look_up(&mut self) -> Result<()> {
        let wanted = std::mem::take(&mut self.wanted);
        if wanted.is_empty() {
            return Ok(());
        }
        let (number, asked) = (self.caller.account.number, wanted.clone());
        let there = self.app.store.read_now(move |tx| {
            let mut there = Vec::with_capacity(asked.len());
            for one in &asked {
                let sql = format!(
                    "SELECT count(*) FROM {} WHERE account_id = $1 AND \"{1}\" = $2 AND \"{1}\" <> ''",
                    one.table, one.field
                );
                there.push(tx.int(&sql, &[number.into(), (&one.value).into()])? > 0);
            }
            Ok::<_, Error>(there)
        })?;
        for (one, _) in wanted.iter().zip(there).filter(|(_, exists)| *exists) {
            self.problem(one.line, one.field, DUPLICATE, "is already used by another record");
        }
        Ok(())
    }
}

/// `It is void …` as the end of a sentence that begins with the column.
fn lowered(sentence: &str) -> String {
    sentence.trim_start_matches("It ").trim_end_matches('.').to_string()
}
