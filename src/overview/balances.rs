//! Figures beside the rows of a list: what each invoice and each client still has to pay, how much of its budget each project has
//! used, and how often each flow ran and failed.

use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, FieldCode, Result, Violation, violation};
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use jiff::ToSpan;
use serde_json::json;
use store::{Tx, Value};

use super::in_euros;
use crate::automation::run;
use crate::documents::Mode;

/// Maximum number of records in a request: a page of a list.
const MAX_IDS: usize = 100;

const OF_CLIENTS: &[Part] = &[Part(
    "client_id",
    "string",
    "The ids of the clients, separated by commas: 100 at most. Without them, the 100 that owe most.",
)];
const CLIENTS: &[Part] = &[
    Part("client_id", "string", "The client. Clients without open invoices are left out."),
    Part("count", "integer", "The number of open invoices."),
    Part("open_amount", "number", "The amount that is still to be paid; refunds are negative."),
    Part("overdue_amount", "number", "The part of it whose due date has passed and that is not being collected."),
];

const OF_INVOICES: &[Part] = &[Part(
    "invoice_id",
    "string",
    "The ids of the invoices, separated by commas: 100 at most. Without them, the 100 that are due first.",
)];
const INVOICES: &[Part] = &[
    Part("invoice_id", "string", "The invoice. Invoices with nothing left to pay are left out."),
    Part("open_amount", "number", "The amount that is still to be paid; a refund is negative."),
];

const OF_PROJECTS: &[Part] = &[Part(
    "project_id",
    "string",
    "The ids of the projects, separated by commas: 100 at most. Without them, the 100 that were created last.",
)];
const PROJECTS: &[Part] = &[
    Part("project_id", "string", "The project. Projects without hours and final invoices are left out."),
    Part("minutes", "integer", "The time that was worked, in minutes."),
    Part("invoiced_amount", "number", "The total of its final invoices and credit invoices, excluding VAT."),
];

const OF_FLOWS: &[Part] = &[Part(
    "flow_id",
    "string",
    "The ids of the flows, separated by commas: 100 at most. Without them, the 100 that were created last.",
)];
const FLOWS: &[Part] = &[
    Part("flow_id", "string", "The flow. Flows that did not run are left out."),
    Part("runs", "integer", "The number of runs that were created in the last 30 days, today included."),
    Part("failed", "integer", "The number of these runs with the status `failed`."),
    Part("capped", "boolean", "Whether there are more runs than were counted: 1,000."),
];
/// The days whose runs are counted, today included.
const DAYS: i64 = 30;
/// Maximum number of runs of a flow that are counted.
const MAX_RUNS: i64 = 1000;

/// Adds the routes to those of the reports.
pub(super) fn routes(reports: Resource) -> Resource {
    reports
        .route(Method::Get, "/clients", "Report what clients still have to pay", clients)
        .returns(Returns::Found(CLIENTS, OF_CLIENTS))
        .with(|route| route.visits_many = true)
        .extension()
        .route(Method::Get, "/invoices", "Report what is still to be paid of invoices", invoices)
        .returns(Returns::Found(INVOICES, OF_INVOICES))
        .with(|route| route.visits_many = true)
        .extension()
        .route(Method::Get, "/projects", "Report the hours and invoices of projects", projects)
        .returns(Returns::Found(PROJECTS, OF_PROJECTS))
        .with(|route| {
            route.visits_many = true;
            route.also_needs = Some("projects.read");
        })
        .extension()
        .route(Method::Get, "/flows", "Report the runs of flows in the last 30 days", flows)
        .returns(Returns::Found(FLOWS, OF_FLOWS))
        .with(|route| (route.scope, route.visits_many) = ("automation.read".to_string(), true))
        .extension()
}

/// Returns the ids in a parameter, without duplicates; none if it is not sent.
fn ids(call: &Call, name: &str) -> Result<Vec<String>, Violation> {
    let sent = call.query.get(name).unwrap_or_default();
    let mut ids: Vec<String> = sent.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_string).collect();
    ids.sort();
    ids.dedup();
    match ids.len() {
        0..=MAX_IDS => Ok(ids),
        _ => Err(violation(FieldCode::TooLong, format!("may have at most {MAX_IDS} values"))),
    }
}

/// Returns the placeholders of the ids in a statement, after `before` others.
fn places(ids: &[String], before: usize) -> String {
    (0..ids.len()).map(|place| format!("${}", before + place + 1)).collect::<Vec<_>>().join(", ")
}

/// `GET /v1/reports/clients`
fn clients(call: Call) -> Result<Work> {
    let ids = ids(&call, "client_id").map_err(|wrong| Error::field("client_id", wrong))?;
    Ok(Box::new(move |tx, ctx| {
        let today = ctx.now.date(&ctx.zone).to_string();
        let named = match ids.is_empty() {
            true => "client_id <> ''".to_string(),
            false => format!("client_id IN ({})", places(&ids, 2)),
        };
        let sql = format!(
            "SELECT client_id, count(*), CAST(sum(open_amount) AS BIGINT),
                    CAST(sum(CASE WHEN due_date < $1 AND collection_date = '' THEN open_amount ELSE 0 END) AS BIGINT)
             FROM invoices{} WHERE account_id = $2 AND open_amount <> 0 AND {named}
             GROUP BY client_id ORDER BY sum(open_amount) DESC, client_id LIMIT {MAX_IDS}",
            tx.dialect().indexed_by("invoices_unpaid_of_client")
        );
        let mut values: Vec<Value> = vec![(&today).into(), ctx.account.into()];
        values.extend(ids.iter().map(Value::from));
        let found = tx.all(&sql, &values, |row| {
            Ok::<_, Error>(json!({
                "client_id": row.text(0)?, "count": row.int(1)?, "open_amount": in_euros(row.int(2)?),
                "overdue_amount": in_euros(row.int(3)?),
            }))
        })?;
        Ok(Answer::list(found))
    }))
}

/// `GET /v1/reports/invoices`
fn invoices(call: Call) -> Result<Work> {
    let ids = ids(&call, "invoice_id").map_err(|wrong| Error::field("invoice_id", wrong))?;
    Ok(Box::new(move |tx, ctx| {
        let (index, named) = match ids.is_empty() {
            true => (tx.dialect().indexed_by("invoices_unpaid"), String::new()),
            false => (String::new(), format!(" AND id IN ({})", places(&ids, 1))),
        };
        let sql = format!(
            "SELECT id, open_amount FROM invoices{index} WHERE account_id = $1 AND open_amount <> 0{named}
             ORDER BY due_date, id LIMIT {MAX_IDS}"
        );
        let mut values: Vec<Value> = vec![ctx.account.into()];
        values.extend(ids.iter().map(Value::from));
        let found = tx.all(&sql, &values, |row| {
            Ok::<_, Error>(json!({"invoice_id": row.text(0)?, "open_amount": in_euros(row.int(1)?)}))
        })?;
        Ok(Answer::list(found))
    }))
}

/// `GET /v1/reports/projects`
fn projects(call: Call) -> Result<Work> {
    let ids = ids(&call, "project_id").map_err(|wrong| Error::field("project_id", wrong))?;
    Ok(Box::new(move |tx, ctx| {
        let ids = match ids.is_empty() {
            true => newest_projects(tx, ctx)?,
            false => ids.clone(),
        };
        if ids.is_empty() {
            return Ok(Answer::list(Vec::new()));
        }
        let places = places(&ids, 1);
        let mut values: Vec<Value> = vec![ctx.account.into()];
        values.extend(ids.iter().map(Value::from));
        let mut sums = |sql: &str| tx.all(sql, &values, |row| Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?)));
        let minutes = sums(&format!(
            "SELECT project_id, CAST(sum(minutes) AS BIGINT) FROM project_hours
             WHERE account_id = $1 AND project_id IN ({places}) GROUP BY project_id"
        ))?;
        let invoiced = sums(&format!(
            "SELECT project_id, CAST(sum(total_excl_vat) AS BIGINT) FROM invoices
             WHERE account_id = $1 AND project_id <> '' AND project_id IN ({places}) AND generation_mode = '{}'
             GROUP BY project_id",
            Mode::Final.wire()
        ))?;
        let of = |sums: &[(String, i64)], id: &str| sums.iter().find(|(own, _)| own == id).map(|(_, sum)| *sum);
        let found = ids.iter().filter_map(|id| match (of(&minutes, id), of(&invoiced, id)) {
            (None, None) => None,
            (minutes, invoiced) => Some(json!({
                "project_id": id, "minutes": minutes.unwrap_or(0), "invoiced_amount": in_euros(invoiced.unwrap_or(0)),
            })),
        });
        Ok(Answer::list(found.collect::<Vec<_>>()))
    }))
}

fn newest_projects(tx: &mut Tx, ctx: &Ctx) -> Result<Vec<String>> {
    let sql = format!("SELECT id FROM projects WHERE account_id = $1 ORDER BY id DESC LIMIT {MAX_IDS}");
    tx.all(&sql, &[ctx.account.into()], |row| Ok::<_, Error>(row.text(0)?.to_string()))
}

/// `GET /v1/reports/flows`
fn flows(call: Call) -> Result<Work> {
    let ids = ids(&call, "flow_id").map_err(|wrong| Error::field("flow_id", wrong))?;
    Ok(Box::new(move |tx, ctx| {
        let today = ctx.now.date(&ctx.zone);
        let first = Moment::start_of(today.checked_sub((DAYS - 1).days()).unwrap_or(today), &ctx.zone);
        let named = match ids.is_empty() {
            true => String::new(),
            false => format!(" AND id IN ({})", places(&ids, 2)),
        };
        // Each count is a range of an index, up to a limit.
        let counted = |index: &str, condition: &str| {
            format!(
                "(SELECT count(*) FROM (SELECT 1 FROM runs{index} WHERE runs.account_id = $1 AND runs.flow_id = flows.id{condition}
                  AND runs.created_at >= $2 LIMIT {}) AS counted)",
                MAX_RUNS + 1
            )
        };
        let sql = format!(
            "SELECT id, {}, {} FROM flows WHERE account_id = $1{named} ORDER BY created_at DESC, id DESC LIMIT {MAX_IDS}",
            counted(&tx.dialect().indexed_by("runs_flow"), ""),
            counted(
                &tx.dialect().indexed_by("runs_flow_status"),
                &format!(" AND runs.status = '{}'", run::Status::Failed.wire())
            )
        );
        let mut values: Vec<Value> = vec![ctx.account.into(), first.0.into()];
        values.extend(ids.iter().map(Value::from));
        let found =
            tx.all(&sql, &values, |row| Ok::<_, Error>((row.text(0)?.to_string(), row.int(1)?, row.int(2)?)))?;
        let ran = found.into_iter().filter(|(_, runs, _)| *runs > 0);
        let shown = ran.map(|(id, runs, failed)| {
            json!({
                "flow_id": id, "runs": runs.min(MAX_RUNS), "failed": failed.min(MAX_RUNS), "capped": runs > MAX_RUNS,
            })
        });
        Ok(Answer::list(shown.collect()))
    }))
}
