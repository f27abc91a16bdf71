//! What can be exported and imported: the resources of the registry, their columns and the scopes that they require.

use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, Violation, violation};
use engine::record::{DETAIL, FieldInfo, Kind as _, When};
use engine::registry::registry;
use engine::resource::{Method, RequestBody, Resource, Route};
use engine::text::did_you_mean;

use super::names;

/// The areas whose records are not imported: they hold secrets, send mail or act by themselves.
const NOT_IMPORTED: &[&str] = &["keys", "users", "webhooks", "automation", "files", "settings"];

/// The settings that other records refer to, or that an account would have to type again.
const SETTINGS: &[&str] = &["tax_rates", "corporate_identities", "custom_fields", "mail_templates"];

/// Those whose lines only say which record of this account is meant. Nobody gets access by a file.
pub const MATCHED: &str = "users";

/// Returns the resources that can be exported, each once.
pub fn exported() -> impl Iterator<Item = &'static Resource> {
    registry().resources.iter().filter(|resource| resource.is_kept() && list_route(resource).is_some())
}

/// Returns the resources that can be imported.
pub fn imported() -> impl Iterator<Item = &'static Resource> {
    let is_safe = |table: &str| SETTINGS.contains(&table) || table == MATCHED;
    let may = move |resource: &Resource| is_safe(resource.shape.table) || !NOT_IMPORTED.contains(&resource.area);
    exported().filter(move |resource| may(resource) && create_route(resource).is_some())
}

fn list_route(resource: &'static Resource) -> Option<&'static Route> {
    resource.routes.iter().find(|route| route.method == Method::Get && route.path == resource.path)
}

/// Returns the route that creates a record.
pub fn create_route(resource: &'static Resource) -> Option<&'static Route> {
    let creates = |route: &&Route| route.method == Method::Post && route.body == RequestBody::Create;
    resource.routes.iter().find(|route| creates(route) && route.path == resource.path)
}

/// Returns the route that changes or deletes a record.
pub fn route_of(resource: &'static Resource, method: Method) -> Option<&'static Route> {
    let own = |route: &&Route| {
        route
            .path
            .strip_prefix(resource.path.as_str())
            .is_some_and(|rest| rest.starts_with("/{") && rest.ends_with('}') && rest.matches('/').count() == 1)
    };
    resource.routes.iter().filter(own).find(|route| route.method == method)
}

/// Finds a resource to export by name.
pub fn to_export(name: &str) -> Result<&'static Resource> {
    known_to_export(name).map_err(|wrong| Error::field("resource", wrong))
}

/// Finds a resource to export by name, or says what is wrong with the name.
pub fn known_to_export(name: &str) -> Result<&'static Resource, Violation> {
    named(name, exported())
}

/// Finds a resource to import by name.
pub fn to_import(name: &str) -> Result<&'static Resource> {
    known_to_import(name).map_err(|wrong| Error::field("resource", wrong))
}

/// Finds a resource to import by name, or says what is wrong with the name.
pub fn known_to_import(name: &str) -> Result<&'static Resource, Violation> {
    named(name, imported())
}

fn named(name: &str, all: impl Iterator<Item = &'static Resource>) -> Result<&'static Resource, Violation> {
    let wanted = name.replace('-', "_");
    let all: Vec<&'static Resource> = all.collect();
    let found = all.iter().find(|resource| resource.shape.table == wanted).copied();
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|resource| resource.shape.table).collect();
        let hint = did_you_mean(&wanted, names.iter().copied());
        let message = format!("must be one of: {}{hint}", names.join(", "));
        violation(FieldCode::InvalidChoice, message)
    })
}

/// Rejects a caller who may not read the records.
pub fn check_reads(ctx: &Ctx, resource: &'static Resource) -> Result<()> {
    require(ctx, list_route(resource), None)
}

/// Rejects a caller who may not create the records.
pub fn check_writes(ctx: &Ctx, resource: &'static Resource) -> Result<()> {
    require(ctx, create_route(resource), None)
}

/// Rejects a caller who may not create the records, or not read the file that they come from.
pub fn check_imports(ctx: &Ctx, resource: &'static Resource) -> Result<()> {
    require(ctx, create_route(resource), Some("files.read"))
}

fn require(ctx: &Ctx, route: Option<&'static Route>, also: Option<&'static str>) -> Result<()> {
    let lacks = route.and_then(|route| route.lacks(|scope| ctx.may(scope)));
    let missing: Vec<String> =
        lacks.into_iter().chain(also.filter(|scope| !ctx.may(scope))).map(|scope| format!("'{scope}'")).collect();
    match missing.len() {
        0 => Ok(()),
        _ => Err(Error::new(Code::Forbidden, format!("The key does not have the scope {}.", missing.join(" or ")))),
    }
}

/// A column of an export.
pub struct Column {
    /// Its name: that of the field, unless it has the names of other records.
    pub title: String,
    /// The field.
    pub name: &'static str,
    /// Whether it is in the `meta` of the record.
    pub in_meta: bool,
    /// Whether its values are dates or times.
    pub is_date: bool,
    /// The table of other records: it has their names instead of their ids. Empty for the values of the field.
    pub names: &'static str,
}

impl Column {
    fn new(name: &'static str, in_meta: bool, is_date: bool) -> Column {
        Column { title: name.to_string(), name, in_meta, is_date, names: "" }
    }
}

/// Returns the columns of an export: the fields that the API shows of a single record, and its times. An id of a resource that
/// is `named` is followed by the name of the record.
pub fn columns(resource: &'static Resource, named: impl Fn(&Resource) -> bool) -> Vec<Column> {
    let shape = resource.shape;
    let mut columns = vec![Column::new("id", false, false)];
    for field in &resource.fields {
        let in_meta = field.rules.in_meta;
        let is_shown = field.rules.views.includes(DETAIL) || in_meta && shape.meta.includes(DETAIL);
        if is_shown || field.name == shape.parent {
            let is_date = field.is_date() || field.kind == When::NAME;
            columns.push(Column::new(field.name, in_meta, is_date));
            if let Some((title, other)) = names::beside(resource, field).filter(|(_, other)| named(other)) {
                columns.push(Column { title, name: field.name, in_meta, is_date: false, names: other.shape.table });
            }
        }
    }
    for (name, shown) in [("created_at", shape.created_at), ("updated_at", shape.updated_at)] {
        if shown.includes(DETAIL) || shape.meta.includes(DETAIL) {
            columns.push(Column::new(name, !shown.includes(DETAIL), true));
        }
    }
    columns
}

/// Returns the fields that an import may fill, with that of the parent.
pub fn fields(resource: &'static Resource) -> impl Iterator<Item = &'static FieldInfo> {
    let parent = resource.shape.parent;
    resource.fields.iter().filter(move |field| field.rules.create || field.name == parent && !parent.is_empty())
}

/// The fields that identify a record although they need not be unique.
const IDENTIFYING: &[&str] =
    &["email", "name", "company_name", "number", "code", "external_id", "title", "phone", "iban"];

/// Returns the fields by which the record of a line can be found: unique ones, and names and numbers that a list can be
/// filtered by.
pub fn identifying(resource: &'static Resource) -> impl Iterator<Item = &'static FieldInfo> {
    let identifies =
        |field: &&FieldInfo| field.rules.is_unique() || field.rules.filter && IDENTIFYING.contains(&field.name);
    fields(resource).filter(|field| field.is("string")).filter(identifies)
}
