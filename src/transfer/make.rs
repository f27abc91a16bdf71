//! The record that a line becomes.

use engine::call::Call;
use engine::contents::Upload;
use engine::context::Ctx;
use engine::error::{Class, Code, Error, FieldCode, FieldErrors, Result, violation};
use engine::json::Json;
use engine::perform::completed;
use engine::resource::Method;
use serde_json::Value;
use store::Tx;

use super::built::Built;
use super::import::{Existing, Import};
use super::lines::{self, Entry, Outcome, PAYMENT, version_of};
use super::mapping::Plan;
use super::{moved, old, subject};
use crate::documents::old as documents;
use crate::files::{self, Origin};

/// Whether an error is about the server, so that another attempt may succeed.
pub fn is_ours(error: &Error) -> bool {
    matches!(error.code.declared().class, Class::Internal | Class::Unavailable | Class::Timeout | Class::TooMany)
}

/// What a line became.
pub struct Made {
    /// Whether it is a new record.
    pub outcome: Outcome,
    /// What was left out, by field.
    pub doubts: FieldErrors,
}

impl From<Outcome> for Made {
    fn from(outcome: Outcome) -> Made {
        Made { outcome, doubts: FieldErrors::default() }
    }
}

/// Creates or changes the record of a line.
pub fn make(
    tx: &mut Tx,
    ctx: &Ctx,
    plan: &Plan,
    import: &Import,
    line: i64,
    built: &Built,
    pdf: Option<&Upload>,
) -> Result<Made> {
    if built.left_out.is_some() {
        return Ok(Outcome::Skipped.into());
    }
    if let Some(problem) = &built.broken {
        return Err(Error::new(Code::ValidationFailed, problem.clone()));
    }
    let table = plan.resource.shape.table;
    let entry = |id: &str, version: i64, outcome: Outcome| Entry {
        line,
        part: 1,
        table: table.to_string(),
        id: id.to_string(),
        source_id: built.source_id.clone(),
        version,
        outcome,
        message: String::new(),
    };
    let (built, known) = &known(tx, ctx, plan, import, built)?;
    if let Some(id) = known {
        if import.existing == Existing::Skip || table == subject::MATCHED {
            if !built.source_id.is_empty() {
                lines::add(tx, ctx, &import.base.id, &entry(id, 0, Outcome::Skipped))?;
            }
            return Ok(Outcome::Skipped.into());
        }
        built.faults.clone().into_result()?;
        change(tx, ctx, plan, built, id)?;
        lines::add(tx, ctx, &import.base.id, &entry(id, 0, Outcome::Updated))?;
        return Ok(Made { outcome: Outcome::Updated, doubts: built.doubts.clone() });
    }
    if table == subject::MATCHED {
        let message = format!("does not match a record in {table}");
        return Err(Error::field("email", violation(FieldCode::ReferenceNotFound, message)));
    }
    if table == "payments" {
        old::drop_assumed_payment(tx, ctx, built)?;
    }
    let mut body = built.body.clone();
    let names_client = body.iter().any(|(name, _)| name == "client_id");
    if !built.client.is_empty()
        && !names_client
        && let Some((client, is_new)) = old::client(tx, ctx, &built.client)?
    {
        if is_new {
            let table = "clients".to_string();
            let new = Entry { part: 0, table, source_id: String::new(), ..entry(&client, 1, Outcome::Created) };
            lines::add(tx, ctx, &import.base.id, &new)?;
        }
        body.push(("client_id".to_string(), Json::Text(client)));
    }
    let answer = completed(plan.prepare(&Built { body, ..built.clone() })?(tx, ctx)?)?;
    let made: Value = serde_json::from_slice(&answer.data).unwrap_or_default();
    // A payment is answered beside its invoice.
    let id = made["id"].as_str().or(made["payment"]["id"].as_str()).unwrap_or_default().to_string();
    let mut version = answer.version.unwrap_or(1);
    if old::is_document(plan.resource)
        && made["meta"]["generation_mode"] == "final"
        && let Some(payment) = complete_final(tx, ctx, table, &made, built, pdf)?
    {
        let (table, source_id) = ("payments".to_string(), id.clone());
        let paid = Entry { part: PAYMENT, table, source_id, ..entry(&payment, 1, Outcome::Created) };
        lines::add(tx, ctx, &import.base.id, &paid)?;
    }
    // What follows from the creation may have changed the record already.
    version = version.max(version_of(tx, ctx, table, &id)?.unwrap_or(version));
    lines::add(tx, ctx, &import.base.id, &entry(&id, version, Outcome::Created))?;
    Ok(Made { outcome: Outcome::Created, doubts: built.doubts.clone() })
}

/// Adds to a final document what the line tells of it: its payment, which is returned, what it credits, and its original PDF.
fn complete_final(
    tx: &mut Tx,
    ctx: &Ctx,
    table: &str,
    made: &Value,
    built: &Built,
    pdf: Option<&Upload>,
) -> Result<Option<String>> {
    let id = made["id"].as_str().unwrap_or_default();
    let payment = if table == "invoices" { old::pay(tx, ctx, made, built)? } else { None };
    let credited = built.beside.get("credited_invoice_id").map_or("", String::as_str);
    if let Some(credited) = moved::same(tx, ctx, "invoices", credited)? {
        documents::link_credit(tx, ctx, id, &credited)?;
    }
    let file = pdf.map(|upload| files::add_as(tx, ctx, upload, Origin::Document)).transpose()?;
    documents::keep_original(tx, ctx, table, id, file.as_ref())?;
    Ok(payment)
}

/// Returns the line with the ids of this account, and the record that it is about, if there is one.
fn known(tx: &mut Tx, ctx: &Ctx, plan: &Plan, import: &Import, built: &Built) -> Result<(Built, Option<String>)> {
    let same = moved::same(tx, ctx, plan.resource.shape.table, &built.source_id)?;
    // What the line refers to does not matter if its record is here and stays as it is.
    if same.is_some() && import.existing == Existing::Skip {
        return Ok((built.clone(), same));
    }
    let built = moved::resolved(tx, ctx, plan.resource, built)?;
    let found = match same {
        None => existing(tx, ctx, plan, import, &built)?,
        same => same,
    };
    Ok((built, found))
}

/// Returns the record that a line matches, if there is one.
fn existing(tx: &mut Tx, ctx: &Ctx, plan: &Plan, import: &Import, built: &Built) -> Result<Option<String>> {
    let by = import.match_by.as_str();
    if by.is_empty() && !built.source_id.is_empty() {
        return moved::alike(tx, ctx, plan.resource.shape.table, built);
    }
    let Some((_, Json::Text(value))) = built.body.iter().find(|(name, _)| name == by) else { return Ok(None) };
    let Some(field) = plan.resource.fields.iter().find(|field| field.name == by) else { return Ok(None) };
    if value.contains('\0') {
        return Ok(None);
    }
    let condition = match () {
        () if field.is_address() => "lower(email) = lower($2)".replace("email", field.name),
        () if field.rules.is_unique() => format!("\"{by}\" = $2 AND \"{by}\" <> ''"),
        () => format!("\"{by}\" = $2"),
    };
    let table = plan.resource.shape.table;
    let sql = format!("SELECT id FROM {table} WHERE account_id = $1 AND {condition} ORDER BY created_at, id LIMIT 2");
    let ids = tx.all(&sql, &[ctx.account.into(), value.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))?;
    if ids.len() > 1 {
        let message = format!("More than one record has the {by} '{value}'.");
        return Err(Error::new(Code::Duplicate, message));
    }
    Ok(ids.into_iter().next())
}

/// Changes a record to what its line says.
fn change(tx: &mut Tx, ctx: &Ctx, plan: &Plan, built: &Built, id: &str) -> Result<()> {
    // Clients would pay somebody else if a file changed the bank account of the business.
    let is_fixed = plan.resource.shape.table == "corporate_identities";
    let route = subject::route_of(plan.resource, Method::Patch).filter(|_| !is_fixed);
    let route = route.ok_or_else(|| Error::new(Code::MethodNotAllowed, "These records cannot be changed."))?;
    let may_change = |name: &str| plan.resource.fields.iter().any(|field| field.name == name && field.rules.patch);
    let body: Vec<(String, Json)> = built.body.iter().filter(|(name, _)| may_change(name)).cloned().collect();
    if body.is_empty() {
        return Ok(());
    }
    let mut path = vec![id.to_string()];
    if !plan.resource.shape.parent.is_empty() {
        path.insert(0, built.parent.clone());
    }
    let call = Call { path, body: Some(Json::Object(body)), early: true, ..Call::default() };
    completed((route.handler)(call)?(tx, ctx)?).map(drop)
}
