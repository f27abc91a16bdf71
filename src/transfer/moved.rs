//! Records that come from another account: what refers to them is found by the id that they had there.

use engine::context::Ctx;
use engine::error::{Error, FieldCode, FieldErrors, Result, violation};
use engine::json::Json;
use engine::known;
use engine::record::FieldInfo;
use engine::resource::{Resource, Route};
use serde_json::Value;
use store::Tx;

use super::built::Built;
use super::subject;

/// Returns an id of ours; empty for any other text. The ids of other programs, such as 1 and 2, are not unique: those of
/// two programs would be taken for the same record.
pub fn id_of(text: &str) -> String {
    let text = text.trim();
    let is_dash = |place: usize| matches!(place, 8 | 13 | 18 | 23);
    let fits = |(place, byte): (usize, u8)| if is_dash(place) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    let is_ours = text.len() == 36 && text.bytes().enumerate().all(fits);
    if is_ours { text.to_lowercase() } else { String::new() }
}

/// Returns the record with an id: one of this account, or what an earlier import made of the one that had the id elsewhere.
pub fn same(tx: &mut Tx, ctx: &Ctx, table: &'static str, id: &str) -> Result<Option<String>> {
    if id.is_empty() || id.contains('\0') {
        return Ok(None);
    }
    if known::exists(tx, ctx, table, id)? {
        return Ok(Some(id.to_string()));
    }
    let sql = format!(
        "SELECT lines.record_id FROM import_lines lines CROSS JOIN {table} own
         WHERE lines.account_id = $1 AND lines.record_table = $2 AND lines.source_id = $3 AND lines.source_id <> ''
           AND lines.part = 1 AND own.account_id = $1 AND own.id = lines.record_id
         ORDER BY lines.import_id DESC, lines.line DESC LIMIT 1"
    );
    tx.first(&sql, &[ctx.account.into(), table.into(), id.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))
}

/// What an account has from its start, or has once: the fields by which such a record is the same in another account.
const ALIKE: &[(&str, &[&str])] = &[
    (subject::MATCHED, &["email"]),
    ("tax_rates", &["code"]),
    ("payment_terms", &["code"]),
    ("custom_fields", &["entity", "key"]),
    ("mail_templates", &["send_type", "language"]),
    ("corporate_identities", &["name"]),
    ("pipelines", &["name"]),
    ("phases", &["pipeline_id", "name"]),
    ("deal_sources", &["name"]),
    ("ticket_statuses", &["name"]),
    ("ticket_channels", &["name"]),
];

/// Returns the record of this account that takes the place of one from another account.
pub fn alike(tx: &mut Tx, ctx: &Ctx, table: &str, built: &Built) -> Result<Option<String>> {
    let Some((_, columns)) = ALIKE.iter().find(|(own, _)| *own == table) else { return Ok(None) };
    let mut values: Vec<store::Value> = vec![ctx.account.into()];
    let mut sql = format!("SELECT id FROM {table} WHERE account_id = $1");
    for column in *columns {
        let Some(text) = text(built, column).filter(|text| !text.contains('\0')) else { return Ok(None) };
        values.push(text.into());
        sql.push_str(&format!(" AND \"{column}\" = ${}", values.len()));
    }
    sql.push_str(" ORDER BY id LIMIT 1");
    tx.first(&sql, &values, |row| Ok::<_, Error>(row.text(0)?.to_string()))
}

fn text<'b>(built: &'b Built, name: &str) -> Option<&'b str> {
    built.body.iter().find_map(|(own, value)| match value {
        Json::Text(text) if own == name && !text.is_empty() => Some(text.as_str()),
        _ => None,
    })
}

/// Returns the line with the ids of this account instead of those of the account that it comes from. What a moved record can
/// be without is left out if it is not here, with a warning; anything else stays, and is a problem.
pub fn resolved(tx: &mut Tx, ctx: &Ctx, resource: &Resource, built: &Built) -> Result<Built> {
    let mut built = built.clone();
    let mut doubts = std::mem::take(&mut built.doubts);
    for field in resource.fields.iter().filter(|field| !field.rules.refers.is_empty()) {
        resolve_field(tx, ctx, resource, field, &mut built, &mut doubts)?;
    }
    resolve_products(tx, ctx, &mut built, &mut doubts)?;
    if !built.source_id.is_empty() {
        drop_unknown_fields(tx, ctx, resource.shape.table, &mut built, &mut doubts)?;
    }
    built.doubts = doubts;
    Ok(built)
}

fn resolve_field(
    tx: &mut Tx,
    ctx: &Ctx,
    resource: &Resource,
    field: &FieldInfo,
    built: &mut Built,
    doubts: &mut FieldErrors,
) -> Result<()> {
    let table = field.rules.refers;
    let missing = format!("does not match a record in {}", table.replace('_', " "));
    if field.name == resource.shape.parent {
        if !built.parent.is_empty() {
            let found = same(tx, ctx, table, &built.parent)?;
            built.parent =
                found.ok_or_else(|| Error::field(field.name, violation(FieldCode::ReferenceNotFound, missing)))?;
        }
        return Ok(());
    }
    let Some(id) = text(built, field.name).map(str::to_string) else { return Ok(()) };
    // Work without its client would be nobody's.
    let is_needed = field.rules.required || field.name == "client_id" || built.source_id.is_empty();
    match same(tx, ctx, table, &id)? {
        Some(own) => put(built, field.name, Json::Text(own)),
        None if is_needed => {}
        None => {
            built.body.retain(|(name, _)| name != field.name);
            doubts.add(field.name, violation(FieldCode::ReferenceNotFound, format!("{missing}; it is left empty")));
        }
    }
    Ok(())
}

fn put(built: &mut Built, name: &str, value: Json) {
    built.body.retain(|(own, _)| own != name);
    built.body.push((name.to_string(), value));
}

/// Resolves the products of the rows of a document, or of the lines of a subscription.
fn resolve_products(tx: &mut Tx, ctx: &Ctx, built: &mut Built, doubts: &mut FieldErrors) -> Result<()> {
    let is_moved = !built.source_id.is_empty();
    for (name, value) in built.body.iter_mut().filter(|(name, _)| name == "rows" || name == "lines") {
        let Json::List(rows) = value else { continue };
        let members = rows.iter_mut().filter_map(|row| match row {
            Json::Object(members) => Some(members),
            _ => None,
        });
        let mut lost = 0;
        for (_, id) in members.flatten().filter(|(key, _)| key == "product_id") {
            let Json::Text(product) = id else { continue };
            if product.is_empty() {
                continue;
            }
            match same(tx, ctx, "products", product)? {
                Some(own) => *product = own,
                None if is_moved => {
                    product.clear();
                    lost += 1;
                }
                None => {}
            }
        }
        if lost > 0 {
            let message = "does not match a record in products; the row keeps its text and price";
            doubts.add(name.as_str(), violation(FieldCode::ReferenceNotFound, message));
        }
    }
    Ok(())
}

/// Leaves out the values of custom fields that this account does not have.
fn drop_unknown_fields(tx: &mut Tx, ctx: &Ctx, table: &str, built: &mut Built, doubts: &mut FieldErrors) -> Result<()> {
    let Some((_, Json::Object(values))) = built.body.iter_mut().find(|(name, _)| name == "custom_fields") else {
        return Ok(());
    };
    let entity = table.trim_end_matches('s');
    let sql = "SELECT \"key\" FROM custom_fields WHERE account_id = $1 AND entity = $2";
    let keys = tx.all(sql, &[ctx.account.into(), entity.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    values.retain(|(key, _)| {
        let is_known = keys.contains(key);
        if !is_known {
            let message = format!("is not a custom field of a {entity}; it is left out");
            doubts.add(format!("custom_fields.{key}"), violation(FieldCode::UnknownField, message));
        }
        is_known
    });
    Ok(())
}

/// Fills in what an export shows in another form than a request sends.
pub fn complete(table: &str, built: &mut Built) {
    match table {
        "ticket_messages" => take_author(built),
        "subscriptions" => take_schedule(built),
        // Clients pay the bank account of the default identity: somebody chooses it, not a file.
        "corporate_identities" => {
            if built.body.iter().any(|(name, value)| name == "is_default" && *value == Json::Bool(true)) {
                let message = "is left out; make it the default yourself when the import has ended";
                built.doubts.add("is_default", violation(FieldCode::ReadOnly, message));
            }
            built.body.retain(|(name, _)| name != "is_default");
        }
        _ => {}
    }
}

fn take_author(built: &mut Built) {
    let author: Value = serde_json::from_str(built.beside.get("author").map_or("", String::as_str)).unwrap_or_default();
    for (field, member) in [("author_name", "name"), ("author_email", "email")] {
        if text(built, field).is_none()
            && let Some(known) = author[member].as_str().filter(|known| !known.is_empty())
        {
            built.body.push((field.to_string(), Json::Text(known.to_string())));
        }
    }
}

fn take_schedule(built: &mut Built) {
    let schedule: Value =
        serde_json::from_str(built.beside.get("schedule").map_or("", String::as_str)).unwrap_or_default();
    let is_weekly = matches!(text(built, "frequency"), Some("weekly" | "four_weeks"));
    let field = if is_weekly { "day_of_week" } else { "day_of_month" };
    if schedule["schedule_type"].as_str().is_some_and(|kind| kind != "start_date")
        && let Some(day) = schedule[field].as_i64()
    {
        put(built, field, Json::Number(day.to_string()));
    }
    if text(built, "status") == Some("ended") {
        built.left_out = Some("It has ended, so it is left out.".to_string());
    }
}

/// Returns the route that creates the record of a line: a message from the client has its own, so that it is not taken for
/// one of ours.
pub fn route(resource: &'static Resource, usual: &'static Route, built: &Built) -> &'static Route {
    let is_inbound = built.beside.get("direction").is_some_and(|direction| direction == "in");
    let inbound = resource.routes.iter().find(|route| route.path.ends_with("/inbound"));
    inbound.filter(|_| is_inbound).unwrap_or(usual)
}
