//! The documents of a deal and of a project: quotes, workorders and invoices in one list.

use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::record::{Record, Shape};
use engine::records::{self, Work};
use engine::resource::{Method, Part, Resource, Returns};
use serde_json::{Value, json};
use store::Tx;

use super::in_euros;
use crate::documents::{Invoice, Quote, Workorder};
use crate::sales::deal::Deal;
use crate::work::project::Project;

static OF_DEAL: Shape = Shape::new("deal_document", "deal_documents", &["A document of a deal."]);
static OF_PROJECT: Shape = Shape::new("project_document", "project_documents", &["A document of a project."]);

/// Maximum number of documents of each kind, the newest.
const MOST: i64 = 100;

const MEMBERS: &[Part] = &[
    Part("type", "string", "`quote`, `workorder` or `invoice`."),
    Part("id", "string", "The id of the document."),
    Part("number", "string", "Its number."),
    Part("title", "string", "Its title."),
    Part("invoice_date", "date or empty", "Its date."),
    Part("payment_status", "string", "Its status."),
    Part("total_excl_vat", "number", "Its total excluding VAT."),
    Part("total_incl_vat", "number", "Its total including VAT."),
    Part("path", "string", "The path of the document in the API."),
];

/// The route of the documents of a deal.
pub(crate) fn of_deals() -> Resource {
    Resource::without_records(&OF_DEAL, "Deal documents", "deals", &[])
        .at("/v1/deals/{id}/documents")
        .route(Method::Get, "", "List the documents of a deal, newest first", |call| list::<Deal>(call, "deal_id"))
        .returns(Returns::ListOfParts(MEMBERS))
        .with(|route| route.also_needs = Some("invoices.read"))
        .extension()
}

/// The route of the documents of a project.
pub(crate) fn of_projects() -> Resource {
    Resource::without_records(&OF_PROJECT, "Project documents", "projects", &[])
        .at("/v1/projects/{id}/documents")
        .route(Method::Get, "", "List the documents of a project, newest first", |call| {
            list::<Project>(call, "project_id")
        })
        .returns(Returns::ListOfParts(MEMBERS))
        .with(|route| route.also_needs = Some("invoices.read"))
        .extension()
}

fn list<P: Record>(call: Call, link: &'static str) -> Result<Work> {
    Ok(Box::new(move |tx, ctx| {
        records::find::<P>(tx, ctx, call.id())?;
        let mut all = of_kind::<Quote>(tx, ctx, link, call.id())?;
        all.extend(of_kind::<Workorder>(tx, ctx, link, call.id())?);
        all.extend(of_kind::<Invoice>(tx, ctx, link, call.id())?);
        // Ids are in the order of creation.
        all.sort_by(|one, other| other["id"].as_str().cmp(&one["id"].as_str()));
        Ok(Answer::list(all))
    }))
}

fn of_kind<R: Record>(tx: &mut Tx, ctx: &Ctx, link: &str, id: &str) -> Result<Vec<Value>> {
    let (name, table) = (R::shape().name, R::shape().table);
    let sql = format!(
        "SELECT id, number, title, invoice_date, payment_status, total_excl_vat, total_incl_vat FROM {table}
         WHERE account_id = $1 AND {link} = $2 AND {link} <> '' ORDER BY id DESC LIMIT {MOST}"
    );
    tx.all(&sql, &[ctx.account.into(), id.into()], |row| {
        let id = row.text(0)?;
        Ok::<_, Error>(json!({
            "type": name, "id": id, "number": row.text(1)?, "title": row.text(2)?, "invoice_date": row.text(3)?,
            "payment_status": row.text(4)?, "total_excl_vat": in_euros(row.int(5)?),
            "total_incl_vat": in_euros(row.int(6)?), "path": format!("/v1/{table}/{id}"),
        }))
    })
}
