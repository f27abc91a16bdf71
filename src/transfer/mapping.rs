//! The plan of an import: which column becomes which field, and how its values are read.

use std::collections::BTreeMap;

use engine::call::Call;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::json::Json;
use engine::record::FieldInfo;
use engine::records::Work;
use engine::resource::{Resource, Route};
use serde_json::Value;
use sheets::{Cell, Dates, Decimal};

use super::sources::{self, Source, SourceTable, folded};
use super::{convert, old, subject};

/// What a column becomes.
#[derive(Clone, Copy)]
pub enum Target {
    /// Nothing.
    Ignored,
    /// A field of the record.
    Field(&'static FieldInfo),
    /// A field of the client of a document, by which it is found or created.
    Client(&'static str),
    /// The name of the original PDF of a document.
    Pdf,
}

/// The fields by which the client of a document is found or created.
pub const CLIENT_FIELDS: &[&str] =
    &["external_id", "email", "company_name", "firstname", "lastname", "address", "zipcode", "city", "country"];

impl Target {
    /// Returns the target with this name: a field, `client.email` and its like, or `pdf`.
    pub fn named(resource: &'static Resource, name: &str) -> Option<Target> {
        if name.is_empty() {
            return Some(Target::Ignored);
        }
        if let Some(field) = subject::fields(resource).find(|field| field.name == name) {
            return Some(Target::Field(field));
        }
        if !old::is_document(resource) {
            return None;
        }
        match name.strip_prefix("client.") {
            Some(field) => CLIENT_FIELDS.iter().find(|own| **own == field).map(|own| Target::Client(own)),
            None => (name == "pdf").then_some(Target::Pdf),
        }
    }

    /// Returns its name.
    pub fn name(&self) -> String {
        match self {
            Target::Ignored => String::new(),
            Target::Field(field) => field.name.to_string(),
            Target::Client(field) => format!("client.{field}"),
            Target::Pdf => "pdf".to_string(),
        }
    }
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
    table: Option<&'static SourceTable>,
}

/// A line as it will be sent to the route.
pub struct Built {
    /// The fields of the record.
    pub body: Vec<(String, Json)>,
    /// The id of its parent, in the path; or empty.
    pub parent: String,
    /// What is known of the client of a document.
    pub client: BTreeMap<&'static str, String>,
    /// The name of its original PDF, or empty.
    pub pdf: String,
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
                faults.add(place, violation(FieldCode::InvalidChoice, "is not a field that can be imported"));
            }
        }
        faults.into_result()?;
        let general = sources::named(sources::GENERAL)?.resources.get(resource.shape.table);
        let mut columns: Vec<(String, Target)> = Vec::new();
        for name in header {
            let target = match chosen.get(name) {
                Some(target) => Target::named(resource, target.as_str().unwrap_or_default()),
                None => guessed(resource, table, general, name)
                    .filter(|target| !columns.iter().any(|(_, other)| other.name() == target.name())),
            };
            columns.push((name.clone(), target.unwrap_or(Target::Ignored)));
        }
        Ok(Plan { resource, route, columns, decimal: Decimal::Point, dates: Dates::YearFirst, table })
    }

    /// Whether a column becomes this field.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|(_, target)| target.name() == name)
    }

    /// Returns the column that becomes a field, or the field itself if it has none.
    pub fn column_of(&self, field: &str) -> String {
        let own = field.split(['.', '[']).next().unwrap_or(field);
        let found = self.columns.iter().find(|(_, target)| target.name() == own);
        found.map_or_else(|| own.to_string(), |(name, _)| name.clone())
    }

    /// Converts the values of a line.
    pub fn build(&self, cells: &[Cell]) -> Built {
        let mut built = Built { body: Vec::new(), parent: String::new(), client: BTreeMap::new(), pdf: String::new() };
        for ((_, target), cell) in self.columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            match target {
                Target::Ignored => {}
                Target::Field(field) if !field.rules.create => built.parent = cell.text().trim().to_string(),
                Target::Field(field) if field.name == self.resource.shape.parent => {
                    built.parent = cell.text().trim().to_string();
                }
                Target::Field(field) => {
                    let cell = self.renamed(field.name, cell);
                    built.body.push((field.name.to_string(), convert::json(field, &cell, self.decimal, self.dates)));
                }
                Target::Client(field) => {
                    built.client.insert(*field, cell.text().trim().to_string());
                }
                Target::Pdf => built.pdf = cell.text().trim().to_string(),
            }
        }
        self.complete(&mut built);
        built
    }

    /// Returns a value in our words, if the source has its own.
    fn renamed(&self, field: &str, cell: &Cell) -> Cell {
        let Some(values) = self.table.and_then(|table| table.values.get(field)) else { return cell.clone() };
        let own = folded(&cell.text());
        let found = values.iter().find(|(from, _)| folded(from) == own);
        found.map_or_else(|| cell.clone(), |(_, to)| Cell::Text(to.clone()))
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
            old::complete(&mut built.body);
        }
    }

    /// Checks the fields of a line; returns the work that creates its record.
    pub fn prepare(&self, built: &Built) -> Result<Work> {
        let parent = self.resource.shape.parent;
        if !parent.is_empty() && built.parent.is_empty() {
            return Err(Error::field(parent, violation(FieldCode::Required, "is required")));
        }
        let path = if parent.is_empty() { Vec::new() } else { vec![built.parent.clone()] };
        (self.route.handler)(Call {
            path,
            body: Some(Json::Object(built.body.clone())),
            early: true,
            ..Call::default()
        })
    }
}

/// Guesses what a column becomes: by the source, by the name of a field, or by what such columns are usually called.
fn guessed(
    resource: &'static Resource,
    table: Option<&'static SourceTable>,
    general: Option<&'static SourceTable>,
    column: &str,
) -> Option<Target> {
    if let Some(target) = table.and_then(|table| table.target(column)) {
        return Target::named(resource, target);
    }
    let wanted = folded(column);
    let by_name = subject::fields(resource).find(|field| folded(field.name) == wanted).map(Target::Field);
    by_name.or_else(|| Target::named(resource, general?.target(column)?))
}
