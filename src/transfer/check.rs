//! Checks the file of an import: recognizes how it is written, and tries every line without creating anything.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use engine::app::App;
use engine::context::Actor;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::json::Json;
use engine::record::{Data, FieldInfo};
use serde_json::{Value, json};
use sheets::{Cell, Dates, Decimal, Encoding, Found, Line, Problem};

use super::import::{DateOrder, DecimalSign, FileEncoding, Import, Objects, Separator};
use super::mapping::{Built, Plan, Target};
use super::{convert, old, sources, subject};
use crate::files::File;

/// Number of problems that are listed.
const MAX_PROBLEMS: usize = 100;
/// Number of records that are shown before the import runs.
const PREVIEWED: usize = 5;
/// Number of lines from which the decimal sign and the order of dates are recognized.
const SAMPLED: usize = 2000;
/// Number of lines whose references are looked up together.
const TOGETHER: usize = 500;
/// The fields whose sums are compared.
pub const SUMMED: &[&str] = &["total_excl_vat", "vat_amount", "total_incl_vat"];

/// Reads the content of a file.
pub fn content(app: &App, file: &File) -> Result<Vec<u8>> {
    let read = tokio::runtime::Handle::current().block_on(app.blobs.read(&file.content));
    read.map(|bytes| bytes.to_vec()).map_err(|error| Error::internal(format!("the file {}: {error}", file.base.id)))
}

/// Converts an error of the reader.
pub fn unreadable(problem: Problem) -> Error {
    match problem {
        Problem::TooLarge(sentence) => Error::new(Code::BodyTooLarge, sentence),
        Problem::Malformed(sentence) => Error::field("file_id", violation(FieldCode::InvalidFormat, sentence)),
        Problem::Io(error) => Error::internal(error.to_string()),
    }
}

/// Returns how the file of an import is read: as recognized, or as the caller chose.
pub fn found(import: &Import, bytes: &[u8]) -> Result<Found> {
    let mut found = sheets::detect(bytes).map_err(unreadable)?;
    if let Some(encoding) = Encoding::named(import.encoding.wire()) {
        found.encoding = encoding;
    }
    found.separator = match import.separator {
        Separator::Auto => found.separator,
        Separator::Comma => ',',
        Separator::Semicolon => ';',
        Separator::Tab => '\t',
        Separator::Bar => '|',
    };
    Ok(found)
}

/// Returns the plan of an import whose decimal sign and order of dates are known.
pub fn plan(import: &Import, header: &[String]) -> Result<Plan> {
    let resource = subject::to_import(&import.resource)?;
    let mut plan = Plan::new(resource, sources::named(&import.source)?, header, &import.mapping.json())?;
    plan.decimal = if import.decimal_sign == DecimalSign::Comma { Decimal::Comma } else { Decimal::Point };
    plan.dates = match import.date_order {
        DateOrder::DayFirst => Dates::DayFirst,
        DateOrder::MonthFirst => Dates::MonthFirst,
        DateOrder::YearFirst | DateOrder::Auto => Dates::YearFirst,
    };
    if !import.match_by.is_empty() {
        let by = plan.resource.fields.iter().find(|field| field.name == import.match_by);
        let fits = by.is_some_and(|field| (field.rules.filter || field.rules.is_unique()) && field.is("string"));
        if !fits {
            let can = plan.resource.fields.iter().filter(|field| field.rules.filter && field.is("string"));
            let names: Vec<&str> = can.map(|field| field.name).collect();
            let wrong = violation(FieldCode::InvalidChoice, format!("must be one of: {}", names.join(", ")));
            return Err(Error::field("match_by", wrong));
        }
    }
    Ok(plan)
}

/// Checks all lines of a file; returns the import with what was found. Nothing is stored.
pub fn check(app: &App, caller: &Actor, import: &Import, bytes: &[u8]) -> Result<Import> {
    let mut import = import.clone();
    let found = found(&import, bytes)?;
    let header = sheets::header(bytes, &found).map_err(unreadable)?;
    import.format = found.format.name().to_string();
    import.encoding = FileEncoding::from_wire(found.encoding.name()).unwrap_or_default();
    import.separator = match found.separator {
        ';' => Separator::Semicolon,
        '\t' => Separator::Tab,
        '|' => Separator::Bar,
        _ => Separator::Comma,
    };
    let first = plan(&import, &header)?;
    let samples = recognize(&mut import, &first, bytes, &found)?;
    let plan = plan(&import, &header)?;
    import.columns = shown_columns(&plan, &samples);
    let own = import.clone();
    let mut checking = Checking::blank(app, caller, &plan, &own);
    let mut failed = None;
    let lines = sheets::read(bytes, &found, &mut |line| match checking.take(line) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    });
    let lines = lines.map_err(unreadable)?;
    if let Some(error) = failed {
        return Err(error);
    }
    checking.look_up()?;
    let Checking { problems, problem_count, bad, preview, sums, .. } = checking;
    import.lines = i64::try_from(lines).unwrap_or(i64::MAX);
    import.valid_lines = import.lines - bad;
    import.problem_count = problem_count;
    import.problems = Objects::from(problems);
    import.preview = Objects::from(preview);
    import.report = report(&sums, None);
    Ok(import)
}

/// Returns the sums of the file and of what was imported.
pub fn report(source: &BTreeMap<&'static str, i128>, imported: Option<&BTreeMap<&'static str, i128>>) -> Data {
    let shown = |sums: &BTreeMap<&'static str, i128>| -> Value {
        sums.iter().map(|(name, cents)| ((*name).to_string(), Value::from(old::amount(*cents)))).collect()
    };
    if source.is_empty() {
        return Data::default();
    }
    let Some(imported) = imported else { return Data::from(json!({"source": shown(source)})) };
    let of = |name: &str| imported.get(name).copied().unwrap_or_default();
    let difference: BTreeMap<&'static str, i128> =
        source.iter().map(|(name, cents)| (*name, of(name) - cents)).collect();
    Data::from(json!({"source": shown(source), "imported": shown(imported), "difference": shown(&difference)}))
}

/// Recognizes the decimal sign and the order of dates from the first lines; returns the first of them.
fn recognize(import: &mut Import, plan: &Plan, bytes: &[u8], found: &Found) -> Result<Vec<Cell>> {
    let (mut numbers, mut dates, mut first, mut seen) = (Vec::new(), Vec::new(), Vec::new(), 0);
    sheets::read(bytes, found, &mut |line| {
        for ((_, target), cell) in plan.columns.iter().zip(&line.cells) {
            match (target, cell) {
                (Target::Field(field), Cell::Text(text)) if convert::is_number(field) => numbers.push(text.clone()),
                (Target::Field(field), Cell::Text(text)) if field.is_date() => dates.push(text.clone()),
                _ => {}
            }
        }
        if seen == 0 {
            first = line.cells;
        }
        seen += 1;
        if seen < SAMPLED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .map_err(unreadable)?;
    if import.decimal_sign == DecimalSign::Auto {
        import.decimal_sign = match sheets::guess_decimal(numbers.iter().map(String::as_str)) {
            Decimal::Comma => DecimalSign::Comma,
            Decimal::Point => DecimalSign::Point,
        };
    }
    if import.date_order == DateOrder::Auto {
        import.date_order = match sheets::guess_dates(dates.iter().map(String::as_str)) {
            Dates::YearFirst => DateOrder::YearFirst,
            Dates::DayFirst => DateOrder::DayFirst,
            Dates::MonthFirst => DateOrder::MonthFirst,
        };
    }
    Ok(first)
}

fn shown_columns(plan: &Plan, samples: &[Cell]) -> Objects {
    let shown = plan.columns.iter().enumerate().map(|(place, (name, target))| {
        let sample: String = samples.get(place).map(Cell::text).unwrap_or_default().chars().take(100).collect();
        let name: String = name.chars().take(200).collect();
        json!({"column": name, "field": target.name(), "sample": sample})
    });
    Objects::from(shown.collect::<Vec<_>>())
}

/// A check in progress.
struct Checking<'c> {
    app: &'c App,
    caller: &'c Actor,
    plan: &'c Plan,
    import: &'c Import,
    /// The fields that must be unique, with the values of the file and their lines.
    unique: Vec<(&'static FieldInfo, HashMap<String, usize>)>,
    /// Values to look up: line, field, table and column, value.
    wanted: Vec<Wanted>,
    last_bad: usize,
    bad: i64,
    problem_count: i64,
    problems: Vec<Value>,
    preview: Vec<Value>,
    sums: BTreeMap<&'static str, i128>,
}

/// A value to look up in the database.
#[derive(Clone)]
struct Wanted {
    line: usize,
    field: &'static str,
    table: &'static str,
    column: &'static str,
    value: String,
    must_exist: bool,
}

impl<'c> Checking<'c> {
    fn blank(app: &'c App, caller: &'c Actor, plan: &'c Plan, import: &'c Import) -> Checking<'c> {
        let is_unique = |field: &&'static FieldInfo| field.rules.is_unique() && field.is("string");
        let unique = subject::fields(plan.resource).filter(is_unique).map(|field| (field, HashMap::new())).collect();
        let mut sums = BTreeMap::new();
        if old::is_document(plan.resource) {
            sums.extend(SUMMED.iter().filter(|name| plan.has(name)).map(|name| (*name, 0)));
        }
        Checking {
            app,
            caller,
            plan,
            import,
            unique,
            wanted: Vec::new(),
            last_bad: 0,
            bad: 0,
            problem_count: 0,
            problems: Vec::new(),
            preview: Vec::new(),
            sums,
        }
    }

    fn take(&mut self, line: Line) -> Result<()> {
        let built = self.plan.build(&line.cells);
        if let Err(error) = self.plan.prepare(&built) {
            self.failed(line.number, &error);
        }
        if self.preview.len() < PREVIEWED {
            let mut shown = Vec::new();
            if Json::Object(built.body.clone()).write(&mut shown).is_ok() {
                self.preview.push(serde_json::from_slice(&shown).unwrap_or_default());
            }
        }
        self.add_up(&built);
        self.compare(line.number, &built);
        if self.wanted.len() >= TOGETHER { self.look_up() } else { Ok(()) }
    }

    fn failed(&mut self, line: usize, error: &Error) {
        if error.faults.is_empty() {
            self.problem(line, "", &error.message);
        }
        for fault in &error.faults {
            self.problem(line, &fault.field, &fault.wrong.message);
        }
    }

    fn problem(&mut self, line: usize, field: &str, message: &str) {
        self.problem_count += 1;
        if self.last_bad != line {
            self.last_bad = line;
            self.bad += 1;
        }
        if self.problems.len() < MAX_PROBLEMS {
            let column: String = self.plan.column_of(field).chars().take(200).collect();
            self.problems.push(json!({"line": line, "column": column, "field": field, "message": message}));
        }
    }

    fn add_up(&mut self, built: &Built) {
        for (name, sum) in &mut self.sums {
            if let Some((_, Json::Number(digits))) = built.body.iter().find(|(own, _)| own == name) {
                *sum += old::cents(digits).unwrap_or_default();
            }
        }
    }

    /// Compares the values that must be unique with those of earlier lines, and collects what the database knows.
    fn compare(&mut self, line: usize, built: &Built) {
        let text = |name: &str| match built.body.iter().find(|(own, _)| own == name) {
            Some((_, Json::Text(text))) => text.clone(),
            _ => String::new(),
        };
        let mut twice = Vec::new();
        let (table, match_by) = (self.plan.resource.shape.table, self.import.match_by.as_str());
        for (field, seen) in &mut self.unique {
            let value = text(field.name);
            if value.is_empty() {
                continue;
            }
            if let Some(earlier) = seen.insert(value.clone(), line) {
                twice.push((field.name, earlier));
            }
            if field.name != match_by {
                let wanted = Wanted { line, field: field.name, table, column: field.name, value, must_exist: false };
                self.wanted.push(wanted);
            }
        }
        for (field, earlier) in twice.into_iter().filter(|(field, _)| *field != match_by) {
            self.problem(line, field, &format!("is the same as on line {earlier}"));
        }
        for field in subject::fields(self.plan.resource).filter(|field| !field.rules.refers.is_empty()) {
            let is_parent = field.name == self.plan.resource.shape.parent;
            let value = if is_parent { built.parent.clone() } else { text(field.name) };
            if !value.is_empty() && !value.contains('\0') {
                let table = field.rules.refers;
                self.wanted.push(Wanted { line, field: field.name, table, column: "id", value, must_exist: true });
            }
        }
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
                let also = if one.column == "id" { String::new() } else { format!(" AND \"{}\" <> ''", one.column) };
                let sql = format!(
                    "SELECT count(*) FROM {} WHERE account_id = $1 AND \"{}\" = $2{also}",
                    one.table, one.column
                );
                there.push(tx.int(&sql, &[number.into(), (&one.value).into()])? > 0);
            }
            Ok::<_, Error>(there)
        })?;
        for (one, exists) in wanted.iter().zip(there) {
            match (one.must_exist, exists) {
                (true, false) => {
                    let message = format!("does not match a record in {}", one.table.replace('_', " "));
                    self.problem(one.line, one.field, &message);
                }
                (false, true) => self.problem(one.line, one.field, "is already used by another record"),
                _ => {}
            }
        }
        Ok(())
    }
}
