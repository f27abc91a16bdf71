//! The plan of an import: which column becomes which field, and how its values are read.

use engine::call::Call;
use engine::clock::Moment;
use engine::error::{Code, Error, FieldCode, FieldErrors, Result, Violation, violation};
use engine::json::Json;
use engine::record::{FieldInfo, When};
use engine::records::Work;
use engine::resource::{Resource, Route};
use engine::text::did_you_mean;
use serde_json::Value;
use sheets::{Cell, Dates, Decimal, Line};

use super::built::Built;
use super::sources::{self, Source, SourceTable, folded};
use super::{convert, moved, names, old, subject};
use crate::documents::old::{self as documents, Past};

/// What a column becomes.
#[derive(Clone, Copy)]
pub enum Target {
    /// Nothing.
    Ignored,
    /// A field of the record.
    Field(&'static FieldInfo),
    /// The id that the record has in the account that it was exported from.
    Id,
    /// A field of the client of a document, by which it is found or created.
    Client(&'static str),
    /// What a line has beside the fields of its record.
    Beside(&'static str, BesideKind),
}

/// How a value beside the fields is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BesideKind {
    /// A text.
    Text,
    /// An amount.
    Amount,
    /// A date.
    Date,
}

/// The name of the id that a record has elsewhere.
pub const ID: &str = "id";

/// What old documents have beside their fields; the amounts and the payment are those of invoices.
pub const BESIDE: &[(&str, BesideKind, &str)] = &[
    ("pdf", BesideKind::Text, "The name of the original PDF in the zip file."),
    ("currency", BesideKind::Text, "The currency of the amounts, which must be EUR."),
    ("sent_at", BesideKind::Date, "The day on which the document was sent."),
    ("paid_at", BesideKind::Date, "The day on which the invoice was paid; otherwise its own date."),
    ("open_amount", BesideKind::Amount, "The amount that is still to be paid."),
    ("paid_amount", BesideKind::Amount, "The amount that was paid."),
    ("credited_invoice_id", BesideKind::Text, "The invoice that a credit invoice credits, by the `id` of its line."),
];

/// Those that every type of document has.
const OF_ALL_DOCUMENTS: usize = 3;

/// What an export shows of messages and subscriptions, which a request sends in another way.
const OF_MESSAGES: &[(&str, BesideKind, &str)] = &[
    ("direction", BesideKind::Text, "`in` for a message from the client, otherwise `out`."),
    ("author", BesideKind::Text, "The author as an object with a `name` and an `email`."),
];
const OF_SUBSCRIPTIONS: &[(&str, BesideKind, &str)] =
    &[("schedule", BesideKind::Text, "The days of invoices, as an export shows them.")];

/// Returns what the lines of a resource have beside its fields.
pub fn beside(resource: &'static Resource) -> &'static [(&'static str, BesideKind, &'static str)] {
    match resource.shape.table {
        "invoices" => BESIDE,
        "ticket_messages" => OF_MESSAGES,
        "subscriptions" => OF_SUBSCRIPTIONS,
        _ if old::is_document(resource) => &BESIDE[..OF_ALL_DOCUMENTS],
        _ => &[],
    }
}

/// The fields by which the client of a document is found or created.
pub const CLIENT_FIELDS: &[&str] =
    &["external_id", "email", "company_name", "firstname", "lastname", "address", "zipcode", "city", "country"];

impl Target {
    /// Returns the target with this name: a field, `client.email` and its like, or what is beside the fields.
    pub fn named(resource: &'static Resource, name: &str) -> Option<Target> {
        if name.is_empty() {
            return Some(Target::Ignored);
        }
        if let Some(field) = subject::fields(resource).find(|field| field.name == name) {
            return Some(Target::Field(field));
        }
        if name == ID {
            return Some(Target::Id);
        }
        if let Some(own) = beside(resource).iter().find(|own| own.0 == name) {
            return Some(Target::Beside(own.0, own.1));
        }
        let field = name.strip_prefix("client.").filter(|_| old::is_document(resource))?;
        CLIENT_FIELDS.iter().find(|own| **own == field).map(|own| Target::Client(own))
    }

    /// Returns its name.
    pub fn name(&self) -> String {
        match self {
            Target::Ignored => String::new(),
            Target::Field(field) => field.name.to_string(),
            Target::Id => ID.to_string(),
            Target::Client(field) => format!("client.{field}"),
            Target::Beside(name, _) => (*name).to_string(),
        }
    }
}

/// Returns everything that a column can become, with what it means.
pub fn targets(resource: &'static Resource) -> Vec<(String, String)> {
    let meaning = |field: &FieldInfo| field.doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let mut targets: Vec<(String, String)> =
        subject::fields(resource).map(|field| (field.name.to_string(), meaning(field))).collect();
    targets.extend(beside(resource).iter().map(|(name, _, meaning)| ((*name).to_string(), (*meaning).to_string())));
    if old::is_document(resource) {
        let meaning = "The client, which is found by this field or created.";
        targets.extend(CLIENT_FIELDS.iter().map(|name| (format!("client.{name}"), meaning.to_string())));
    }
    let meaning = "The id of the record in the account that it was exported from, by which other files refer to it.";
    targets.push((ID.to_string(), meaning.to_string()));
    targets
}

/// How the lines of a file become records.
pub struct Plan {
    /// The resource.
    pub resource: &'static Resource,
    /// The route that creates a record.
    pub route: &'static Route,
    /// The columns of the file, in order, and what they become.
    pub columns: Vec<(String, Target)>,
    /// The decimal sign of numbers.
    pub decimal: Decimal,
    /// The order of dates.
    pub dates: Dates,
    /// The last year that a document can have.
    pub last_year: i16,
    table: Option<&'static SourceTable>,
    general: Option<&'static SourceTable>,
}

impl Plan {
    /// Makes the plan of a file with these columns. `chosen` has the targets that the caller chose, by column.
    pub fn new(
        resource: &'static Resource,
        source: &'static Source,
        header: &[String],
        chosen: &Value,
    ) -> Result<Plan> {
        let route = subject::create_route(resource).ok_or_else(|| Error::not_found("resource"))?;
        let table = source.resources.get(resource.shape.table);
        let mut faults = FieldErrors::default();
        for (column, target) in chosen.as_object().into_iter().flatten() {
            let place = format!("mapping.{}", column.chars().take(100).collect::<String>());
            if !header.contains(column) {
                faults.add(place, violation(FieldCode::InvalidChoice, "is not a column of the file"));
            } else if !target.is_string() && !target.is_null() {
                faults.add(place, violation(FieldCode::WrongType, "must be the name of a field, or empty"));
            } else if Target::named(resource, target.as_str().unwrap_or_default()).is_none() {
                let names: Vec<String> = targets(resource).into_iter().map(|(name, _)| name).collect();
                let hint = did_you_mean(target.as_str().unwrap_or_default(), names.iter().map(String::as_str));
                let message = format!("must be empty or one of: {}{hint}", names.join(", "));
                faults.add(place, violation(FieldCode::InvalidChoice, message));
            }
        }
        faults.into_result()?;
        let general = sources::named(sources::GENERAL)?.resources.get(resource.shape.table);
        let mut columns: Vec<(String, Target)> = Vec::new();
        for name in header {
            let is_repeated = columns.iter().any(|(earlier, _)| earlier == name);
            let target = match chosen.get(name) {
                // A mapping names columns: of those with the same name, it means the first.
                Some(_) if is_repeated => Some(Target::Ignored),
                Some(target) => Target::named(resource, target.as_str().unwrap_or_default()),
                None => guessed(resource, table, general, header, name)
                    .filter(|target| !columns.iter().any(|(_, other)| other.name() == target.name()))
                    .filter(|target| !header.iter().any(|other| chosen[other.as_str()] == target.name().as_str())),
            };
            columns.push((name.clone(), target.unwrap_or(Target::Ignored)));
        }
        each_once(&columns)?;
        let (decimal, dates) = (Decimal::Point, Dates::YearFirst);
        Ok(Plan { resource, route, columns, decimal, dates, last_year: i16::MAX, table, general })
    }

    /// Whether a column becomes this field.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|(_, target)| target.name() == name)
    }

    /// Returns the column that becomes a field, or the field itself if it has none.
    pub fn column_of(&self, field: &str) -> String {
        if field.is_empty() {
            return String::new();
        }
        let own = field.split(['.', '[']).next().unwrap_or(field);
        let named = |name: &str| self.columns.iter().find(|(_, target)| target.name() == name);
        named(field).or_else(|| named(own)).map_or_else(|| own.to_string(), |(name, _)| name.clone())
    }

    /// Converts a line.
    pub fn build_line(&self, line: &Line) -> Built {
        Built { broken: line.problem.clone(), ..self.build(&line.cells) }
    }

    /// Converts the values of a line.
    fn build(&self, cells: &[Cell]) -> Built {
        let mut built = Built::default();
        for ((_, target), cell) in self.columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            match target {
                Target::Ignored => {}
                target if matches!(cell, Cell::Error(_)) => {
                    let message = format!("is an error in the sheet: {}", cell.text());
                    built.faults.add(target.name(), violation(FieldCode::InvalidFormat, message));
                }
                Target::Field(field) if !field.rules.create => built.parent = cell.text().trim().to_string(),
                Target::Field(field) if field.name == self.resource.shape.parent => {
                    built.parent = cell.text().trim().to_string();
                }
                Target::Field(field) => {
                    let value = built.faults.take(field.name, self.value(field, cell));
                    built.body.extend(value.map(|value| (field.name.to_string(), value)));
                }
                Target::Id => built.source_id = moved::id_of(&cell.text()),
                Target::Client(field) => {
                    built.client.insert(*field, cell.text().trim().to_string());
                }
                Target::Beside(name, kind) => {
                    let value = built.faults.take(name, self.beside(*kind, cell));
                    built.beside.extend(value.map(|value| (*name, value)));
                }
            }
        }
        self.complete(&mut built);
        built
    }

    /// Reads the value of a field.
    fn value(&self, field: &FieldInfo, cell: &Cell) -> Result<Json, Violation> {
        if matches!(cell, Cell::Text(_)) && convert::is_number(field) {
            convert::in_euros(cell)?;
        }
        let value = convert::json(field, &self.renamed(field.name, cell), self.decimal, self.dates);
        let value = value.ok_or_else(|| self.wrong_date())?;
        convert::is_rate(field, cell, &value)?;
        match &value {
            Json::Text(date) if old::is_document(self.resource) && field.is_date() => self.check_year(date)?,
            _ => {}
        }
        Ok(value)
    }

    /// Reads a value beside the fields.
    fn beside(&self, kind: BesideKind, cell: &Cell) -> Result<String, Violation> {
        let text = cell.text().trim().to_string();
        match (kind, cell) {
            (BesideKind::Text, _) => Ok(text),
            (BesideKind::Amount, _) => {
                convert::in_euros(cell)?;
                let digits = convert::digits(cell, self.decimal);
                digits.ok_or_else(|| violation(FieldCode::WrongType, "must be a number"))
            }
            (BesideKind::Date, _) => {
                let date = match cell {
                    Cell::Date(date) => Some(date.chars().take(10).collect()),
                    _ => sheets::date(&text, self.dates),
                };
                let date = date.ok_or_else(|| self.wrong_date())?;
                self.check_year(&date)?;
                Ok(date)
            }
        }
    }

    /// Returns a value as it is read, for people; empty if it cannot be read.
    pub fn shown(&self, target: &Target, cell: &Cell) -> String {
        let text = cell.text();
        match target {
            _ if cell.is_empty() || matches!(cell, Cell::Error(_)) => String::new(),
            Target::Field(field) => match self.value(field, cell) {
                Ok(Json::Text(text) | Json::Number(text)) => text,
                Ok(Json::Bool(value)) => value.to_string(),
                Ok(_) => text,
                Err(_) => String::new(),
            },
            Target::Beside(_, kind) => self.beside(*kind, cell).unwrap_or_default(),
            Target::Id => moved::id_of(&text),
            Target::Client(_) | Target::Ignored => text.trim().to_string(),
        }
    }

    /// Rejects a date of a document that must be a mistake.
    fn check_year(&self, date: &str) -> Result<(), Violation> {
        let year: i16 = date.get(..4).and_then(|year| year.parse().ok()).unwrap_or(FIRST_YEAR);
        if (FIRST_YEAR..=self.last_year).contains(&year) {
            return Ok(());
        }
        let message = format!("is {date}, but the year must be from {FIRST_YEAR} to {}", self.last_year);
        Err(violation(FieldCode::OutOfRange, message))
    }

    /// Says how dates are expected.
    fn wrong_date(&self) -> Violation {
        let example = match self.dates {
            Dates::YearFirst => "2026-12-31",
            Dates::DayFirst => "31-12-2026",
            Dates::MonthFirst => "12/31/2026",
        };
        violation(FieldCode::InvalidFormat, format!("must be a date such as {example}; see `date_order`"))
    }

    /// Returns a value in our words, if the source or common use has its own.
    fn renamed(&self, field: &str, cell: &Cell) -> Cell {
        let own = folded(&cell.text());
        for table in [self.table, self.general].into_iter().flatten() {
            let found = table.values.get(field).and_then(|values| values.iter().find(|(from, _)| folded(from) == own));
            if let Some((_, to)) = found {
                return Cell::Text(to.clone());
            }
        }
        cell.clone()
    }

    /// Fills in what the source always means, and what follows from the other fields.
    fn complete(&self, built: &mut Built) {
        let has = |body: &[(String, Json)], name: &str| body.iter().any(|(own, _)| own == name);
        if let Some(table) = self.table {
            for (field, from) in
                table.otherwise.iter().filter(|(field, _)| !has(&built.body, field)).collect::<Vec<_>>()
            {
                let value = from.iter().find_map(|name| built.body.iter().find(|(own, _)| own == name)).cloned();
                built.body.extend(value.map(|(_, value)| (field.clone(), value)));
            }
            for (field, value) in &table.fixed {
                if !has(&built.body, field)
                    && let Ok(json) = Json::parse(value.to_string().as_bytes())
                {
                    built.body.push((field.clone(), json));
                }
            }
        }
        let known = |name: &str| self.resource.fields.iter().any(|field| field.name == name);
        // Somebody without a company is a person.
        if known("company_name") && known("type") && !has(&built.body, "type") && !has(&built.body, "company_name") {
            built.body.push(("type".to_string(), Json::Text("private".to_string())));
        }
        if old::is_document(self.resource) {
            old::complete(self.resource, built);
        }
        moved::complete(self.resource.shape.table, built);
    }

    /// Checks the fields of a line; returns the work that creates its record.
    pub fn prepare(&self, built: &Built) -> Result<Work> {
        if let Some(problem) = &built.broken {
            return Err(Error::new(Code::ValidationFailed, problem.clone()));
        }
        let parent = self.resource.shape.parent;
        let mut faults = built.faults.clone();
        faults.0.extend(built.missing.0.iter().cloned());
        if !parent.is_empty() && built.parent.is_empty() {
            faults.add(parent, violation(FieldCode::Required, "is required"));
        }
        let path = if parent.is_empty() { Vec::new() } else { vec![built.parent.clone()] };
        let call = Call { path, body: Some(Json::Object(built.body.clone())), early: true, ..Call::default() };
        let noon = |day: &str| When(Moment::parse(&format!("{day}T12:00:00Z")));
        let past = Past { paid_at: noon(&built.paid_on), sent_at: noon(&built.sent_on) };
        let work = match documents::create(self.resource.shape.table, call.clone(), past) {
            Ok(Some(work)) => Ok(work),
            Ok(None) => (moved::route(self.resource, self.route, built).handler)(call),
            Err(error) => Err(error),
        };
        if faults.0.is_empty() {
            return work;
        }
        // The line says all that is wrong with it, each field once.
        for fault in work.err().map(|error| error.faults).unwrap_or_default() {
            // An old document is named after its number.
            let is_named = fault.field == "title" && built.missing.has("number");
            if !is_named && !faults.has(&fault.field) {
                faults.0.push(fault);
            }
        }
        Err(faults.into_result().err().unwrap_or_else(|| Error::internal("a line without a problem was rejected")))
    }
}

/// The first year that a document can have: an earlier one is a mistake, such as 1900 for an empty date.
const FIRST_YEAR: i16 = 1990;

/// Rejects columns that become the same field: only one of them would count.
fn each_once(columns: &[(String, Target)]) -> Result<()> {
    let mut faults = FieldErrors::default();
    for (place, (column, target)) in columns.iter().enumerate() {
        let name = target.name();
        let earlier = columns[..place].iter().find(|(_, other)| !name.is_empty() && other.name() == name);
        if let Some((earlier, _)) = earlier {
            let place = format!("mapping.{}", column.chars().take(100).collect::<String>());
            let earlier: String = earlier.chars().take(100).collect();
            let message = format!("becomes {name}, as does the column '{earlier}': choose one of them");
            faults.add(place, violation(FieldCode::GivenTwice, message));
        }
    }
    faults.into_result()
}

/// Guesses what a column becomes: by the source, by the name of a field, or by what such columns are usually called.
fn guessed(
    resource: &'static Resource,
    table: Option<&'static SourceTable>,
    general: Option<&'static SourceTable>,
    header: &[String],
    column: &str,
) -> Option<Target> {
    if let Some(target) = table.and_then(|table| table.target(column)) {
        return Target::named(resource, target);
    }
    // Of an export, the ids count.
    if names::are_in(resource, header, column) {
        return None;
    }
    let wanted = folded(column);
    let by_name = subject::fields(resource).find(|field| folded(field.name) == wanted).map(Target::Field);
    // What an export shows under another name than a request sends.
    let shown = || {
        let beside = beside(resource).iter().find(|own| folded(own.0) == wanted).map(|own| own.0);
        let own = |field: &&FieldInfo| !field.rules.sent_as.is_empty() && folded(field.name) == wanted;
        let name = beside.or_else(|| resource.fields.iter().find(own).map(|field| field.rules.sent_as));
        Target::named(resource, name.or((wanted == ID).then_some(ID))?)
    };
    by_name.or_else(shown).or_else(|| Target::named(resource, general?.target(column)?))
}
