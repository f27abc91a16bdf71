//! `GET /v1/overview`: what needs attention, each a number and where it applies an amount. Every number has an index of its
//! own and is counted up to a limit, so the response takes the same time in every account.

use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::record::Shape;
use engine::records::Work;
use engine::resource::{Method, Part, Resource, Returns};
use jiff::ToSpan;
use jiff::civil::Date;
use serde_json::{Value, json};
use store::Tx;

use super::in_euros;
use crate::automation::run;
use crate::documents::{Mode, PaymentStatus};
use crate::mail::{Standing, listed};
use crate::sales::deal;
use crate::support::ticket;
use crate::work::{hour, task};

static SHAPE: Shape = Shape::new("attention_item", "overview", &["Something that needs attention."]);

const MEMBERS: &[Part] = &[
    Part("name", "string", "What it is, such as `invoices_overdue`."),
    Part("count", "integer", "How many there are."),
    Part("amount", "number?", "What they add up to, including VAT; only for documents and deals."),
    Part(
        "mine",
        "integer?",
        "How many of them are assigned to the caller, 0 if a key calls; only for deals, tickets and tasks.",
    ),
    Part("capped", "boolean", "Whether there are more than were counted."),
    Part("path", "string", "The list of them."),
];

/// The route of the overview.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Overview", "relations", &[])
        .route(Method::Get, "", "List what needs attention", get)
        .returns(Returns::ListOfParts(MEMBERS))
        // Each item requires its own scope.
        .with(|route| (route.scope, route.visits_many) = (String::new(), true))
        .extension()
}

/// Maximum number that is counted.
const MOST: i64 = 10_000;
/// Maximum number of open deals whose tasks are looked up.
const MOST_DEALS: i64 = 1000;
/// Maximum number of mails.
const MOST_MAILS: i64 = 1000;

/// Something that needs attention.
struct Item {
    name: &'static str,
    scope: &'static str,
    path: &'static str,
    /// The columns of the rows: an amount in cents, or none; and the user, or none.
    amount: &'static str,
    user: &'static str,
    /// The table, and the index that SQLite must use, since it has no statistics.
    table: &'static str,
    index: &'static str,
    /// The condition besides the account; $3 is the day or moment of `since`.
    condition: fn() -> String,
    since: Since,
}

/// What the second value of a condition is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// There is none.
    Never,
    /// Today.
    Today,
    /// The end of the day a week ago, as a moment.
    WeekAgo,
}

const OVERDUE: Item = Item {
    name: "invoices_overdue",
    scope: "invoices.read",
    path: "/v1/invoices?payment_status=open,overdue,partial&due_date_to={yesterday}&collected=false&owed=true",
    amount: "open_amount",
    user: "",
    table: "invoices",
    index: "invoices_unpaid",
    condition: || "due_date < $3 AND open_amount <> 0 AND open_amount > 0 AND collection_date = ''".to_string(),
    since: Since::Today,
};

const ITEMS: &[Item] = &[
    OVERDUE,
    Item {
        name: "quotes_unanswered",
        path: "/v1/quotes?payment_status=open&sent=true",
        amount: "total_incl_vat",
        table: "quotes",
        index: "quotes_unanswered",
        condition: || {
            let (open, mode) = (PaymentStatus::Open, Mode::Final.wire());
            format!("payment_status = '{open}' AND generation_mode = '{mode}' AND sent_at > 0")
        },
        since: Since::Never,
        ..OVERDUE
    },
    Item {
        name: "invoice_drafts_old",
        path: "/v1/invoices?payment_status=draft&created_to={week_ago}&sort=created_at&order=asc",
        amount: "total_incl_vat",
        table: "invoices",
        index: "invoices_drafted",
        ..OLD_DRAFTS
    },
    Item {
        name: "quote_drafts_old",
        path: "/v1/quotes?payment_status=draft&created_to={week_ago}&sort=created_at&order=asc",
        table: "quotes",
        index: "quotes_drafted",
        ..OLD_DRAFTS
    },
    Item {
        name: "workorder_drafts_old",
        path: "/v1/workorders?payment_status=draft&created_to={week_ago}&sort=created_at&order=asc",
        table: "workorders",
        index: "workorders_drafted",
        ..OLD_DRAFTS
    },
    Item {
        name: "tickets_waiting",
        scope: "tickets.read",
        path: "/v1/tickets?waiting=true",
        user: "assignee_id",
        table: "tickets",
        index: "tickets_waiting",
        condition: ticket::waiting,
        ..PLAIN
    },
    Item {
        name: "tasks_due",
        scope: "tasks.read",
        path: "/v1/tasks?status=open&deadline_to={today}&sort=deadline&order=asc",
        user: "assignee_id",
        table: "tasks",
        index: "tasks_due",
        condition: || format!("deadline <= $3 AND status = '{}' AND deadline <> ''", task::Status::Open.wire()),
        since: Since::Today,
        ..PLAIN
    },
    Item {
        name: "hours_to_approve",
        scope: "projects.read",
        path: "/v1/hours?status=submitted",
        table: "project_hours",
        index: "project_hours_statuses",
        condition: || format!("status = '{}'", hour::Status::Submitted.wire()),
        ..PLAIN
    },
    Item {
        name: "runs_to_approve",
        scope: "automation.read",
        path: "/v1/automation/runs?status=pending_approval",
        table: "runs",
        index: "runs_status",
        condition: || format!("status = '{}'", run::Status::PendingApproval.wire()),
        ..PLAIN
    },
    Item {
        name: "subscriptions_with_problem",
        scope: "invoices.read",
        path: "/v1/subscriptions?has_problem=true",
        table: "subscriptions",
        index: "subscriptions_problem",
        condition: || "problem <> ''".to_string(),
        ..PLAIN
    },
];

const OLD_DRAFTS: Item = Item {
    amount: "total_incl_vat",
    condition: || format!("created_at < $3 AND generation_mode = '{}'", Mode::Draft.wire()),
    since: Since::WeekAgo,
    ..OVERDUE
};

const PLAIN: Item = Item { amount: "", since: Since::Never, ..OVERDUE };

/// `GET /v1/overview`
fn get(_: Call) -> Result<Work> {
    Ok(Box::new(|tx, ctx| {
        let mut found = Vec::new();
        for item in ITEMS.iter().filter(|item| ctx.may(item.scope)) {
            found.push(counted(tx, ctx, item)?);
        }
        if ctx.may("deals.read") {
            found.push(deals(tx, ctx)?);
        }
        if ctx.may("invoices.read") {
            found.push(mails(tx, ctx)?);
        }
        let mut answer = Answer::json(&Value::from(found.clone()));
        answer.meta.push(format!("\"total\":{}", found.len()));
        Ok(answer)
    }))
}

fn counted(tx: &mut Tx, ctx: &Ctx, item: &Item) -> Result<Value> {
    let or_none = |column: &'static str, none: &'static str| if column.is_empty() { none } else { column };
    let mut values = vec![user_of(ctx).into(), ctx.account.into()];
    match item.since {
        Since::Never => {}
        Since::Today => values.push(ctx.now.date(&ctx.zone).to_string().into()),
        Since::WeekAgo => values.push(start_of(ctx, WEEK - 1).0.into()),
    }
    let sql = format!(
        "SELECT count(*), CAST(coalesce(sum(amount), 0) AS BIGINT), count(CASE WHEN person = $1 THEN 1 END)
         FROM (SELECT {} AS amount, {} AS person FROM {}{} WHERE account_id = $2 AND {} LIMIT {}) AS attention",
        or_none(item.amount, "0"),
        or_none(item.user, "''"),
        item.table,
        tx.dialect().indexed_by(item.index),
        (item.condition)(),
        MOST + 1
    );
    let found = three(tx, &sql, &values)?;
    Ok(shown(ctx, item, MOST, found))
}

/// The days after which a draft is old, and those in which mail failed.
const WEEK: i64 = 7;
const MONTH: i64 = 30;

/// Returns the day so many days ago.
fn days_ago(ctx: &Ctx, days: i64) -> Date {
    let today = ctx.now.date(&ctx.zone);
    today.checked_sub(days.days()).unwrap_or(today)
}

/// Returns the start of the day so many days ago.
fn start_of(ctx: &Ctx, days: i64) -> Moment {
    Moment::start_of(days_ago(ctx, days), &ctx.zone)
}

/// Returns a path with the days that it names.
fn path(ctx: &Ctx, path: &str) -> String {
    let names = [("{today}", 0), ("{yesterday}", 1), ("{week_ago}", WEEK), ("{month_ago}", MONTH)];
    let fill = |path: String, (name, days): (&str, i64)| path.replace(name, &days_ago(ctx, days).to_string());
    names.into_iter().fold(path.to_string(), fill)
}

/// Returns the user who calls, or a word that is no id.
fn user_of(ctx: &Ctx) -> String {
    let key = ctx.key.as_ref().filter(|key| !key.session.is_empty());
    key.map_or_else(|| "none".to_string(), |key| key.id.clone())
}

fn three(tx: &mut Tx, sql: &str, values: &[store::Value]) -> Result<[i64; 3]> {
    let found = tx.first(sql, values, |row| Ok::<_, Error>([row.int(0)?, row.int(1)?, row.int(2)?]))?;
    Ok(found.unwrap_or_default())
}

fn shown(ctx: &Ctx, item: &Item, most: i64, [count, amount, mine]: [i64; 3]) -> Value {
    let path = path(ctx, item.path);
    let mut shown = json!({"name": item.name, "count": count.min(most), "capped": count > most, "path": path});
    if !item.amount.is_empty() {
        shown["amount"] = in_euros(amount);
    }
    if !item.user.is_empty() {
        shown["mine"] = mine.into();
    }
    shown
}

const DEALS: Item = Item {
    name: "deals_without_task",
    path: "/v1/deals?status=open&without_task=true",
    amount: "amount",
    user: "assignee_id",
    ..OVERDUE
};

/// Open deals without an open task, so that nobody follows them up. The latest deals are looked at.
fn deals(tx: &mut Tx, ctx: &Ctx) -> Result<Value> {
    // The tasks are counted: for an `EXISTS` PostgreSQL might read all of them first.
    let sql = format!(
        "SELECT count(*), CAST(coalesce(sum(amount), 0) AS BIGINT), count(CASE WHEN person = $1 THEN 1 END)
         FROM (SELECT id, amount, assignee_id AS person FROM deals{} WHERE account_id = $2 AND status = '{}'
               ORDER BY created_at DESC, id DESC LIMIT {}) AS attention
         WHERE (SELECT count(*) FROM tasks{} WHERE tasks.account_id = $2 AND tasks.deal_id = attention.id AND tasks.deal_id <> ''
                AND tasks.status = '{}') = 0",
        tx.dialect().indexed_by("deals_status"),
        deal::Status::Open.wire(),
        MOST_DEALS + 1,
        tx.dialect().indexed_by("tasks_of_deal"),
        task::Status::Open.wire()
    );
    let found = three(tx, &sql, &[user_of(ctx).into(), ctx.account.into()])?;
    Ok(shown(ctx, &DEALS, MOST_DEALS, found))
}

const MAILS: Item = Item { name: "mails_failed", path: "/v1/mails?status=failed&updated_from={month_ago}", ..PLAIN };

/// Mails of the last 30 days that could not be delivered.
fn mails(tx: &mut Tx, ctx: &Ctx) -> Result<Value> {
    let sql = format!(
        "SELECT count(*), CAST(0 AS BIGINT), CAST(0 AS BIGINT) FROM (SELECT 1 FROM deliveries{} CROSS JOIN mails
         WHERE deliveries.account_id = $1 AND deliveries.changed_at >= $2 AND deliveries.status = '{}'
         AND mails.account_id = deliveries.account_id AND mails.id = deliveries.mail_id{} LIMIT {}) AS attention",
        tx.dialect().indexed_by("deliveries_failed"),
        Standing::Failed.wire(),
        listed::readable(ctx),
        MOST_MAILS + 1
    );
    let found = three(tx, &sql, &[ctx.account.into(), start_of(ctx, MONTH).0.into()])?;
    Ok(shown(ctx, &MAILS, MOST_MAILS, found))
}
