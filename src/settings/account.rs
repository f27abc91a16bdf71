//! The account itself: its name can be changed, and the operator of the server can close it.

use engine::accounts::{self, Account};
use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::Ctx;
use engine::error::{Error, FieldCode, Result, violation};
use engine::input;
use engine::input::Input;
use engine::jobs;
use engine::log::{self, Event};
use engine::record::{Body, REQUIRED, Shape};
use engine::records::{self, Work};
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use engine::text::check_name;
use store::Tx;

use super::corporate_identity::{self, CorporateIdentity};

input! {
    /// What can be changed about the account.
    pub struct Named;

    /// The name of the account, which the screens and mail to users show. Documents show the name of a corporate identity.
    name: String = REQUIRED.at_most(255).plain_name().example("\"Installatiebedrijf Jansen\"");
}

impl Body for Named {}

static SHAPE: Shape = Shape::new("account", "own_account", &["The account: one business with its own records."]);

const PARTS: &[Part] = &[
    Part("id", "string", "The id."),
    Part("name", "string", "The name."),
    Part("time_zone", "string", "The time zone, which determines when a day begins."),
    Part("test_clock", "boolean", "Whether it has a test clock."),
];

/// The routes of the account.
pub(crate) fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Account", "settings", &[])
        .at("/v1/account")
        .route(Method::Get, "", "Retrieve the account", get)
        .returns(Returns::Parts(PARTS))
        .with(|route| route.scope = "settings.read".to_string())
        .extension()
        .route(Method::Patch, "", "Change the name of the account", patch)
        .body::<Named>(RequestBody::Body)
        .returns(Returns::Parts(PARTS))
        .extension()
}

/// `GET /v1/account`
fn get(_: Call) -> Result<Work> {
    Ok(Box::new(shown))
}

fn shown(tx: &mut Tx, ctx: &Ctx) -> Result<Answer> {
    Ok(Answer::json(&Account::numbered(tx, ctx.account)?.shown()))
}

/// `PATCH /v1/account`
fn patch(call: Call) -> Result<Work> {
    let input: Input<Named> = input::create(&call)?;
    Ok(Box::new(move |tx, ctx| {
        rename(tx, ctx, &one_line("name", &input.values().name)?)?;
        Ok(shown(tx, ctx)?.with_texts("warnings", &input.warnings))
    }))
}

/// Returns the name of a business without the spaces around it.
pub(crate) fn one_line(field: &str, name: &str) -> Result<String> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Error::field(field, violation(FieldCode::Required, "is required")));
    }
    check_name(name).map_err(|wrong| Error::field(field, wrong))?;
    Ok(name.to_string())
}

/// The name of the first account, until its owner gives it another one.
pub const UNNAMED: &str = "My company";

/// Gives the account the name of the business, and its identity too, if that still has the name of the account.
pub(crate) fn name_business(tx: &mut Tx, ctx: &Ctx, name: &str) -> Result<()> {
    let was = Account::numbered(tx, ctx.account)?.name;
    rename(tx, ctx, name)?;
    let before = corporate_identity::default_one(tx, ctx)?;
    // The account may have been renamed before it was set up.
    if before.name != was && before.name != UNNAMED {
        return Ok(());
    }
    let mut identity = CorporateIdentity { name: name.to_string(), ..(*before).clone() };
    records::change(tx, ctx, &*before, &mut identity, "updated")
}

/// Gives the account another name.
pub(crate) fn rename(tx: &mut Tx, ctx: &Ctx, name: &str) -> Result<()> {
    let before = Account::numbered(tx, ctx.account)?;
    if before.name == name {
        return Ok(());
    }
    let account = before.rename(tx, name)?;
    tell(tx, ctx, &account, accounts::UPDATED)
}

/// Closes the account; returns whether it was open. Its keys, sessions and pages stop working within a second, and its jobs,
/// flows and webhooks stop. Nothing is deleted.
pub(crate) fn close(tx: &mut Tx, ctx: &Ctx) -> Result<bool> {
    let account = Account::numbered(tx, ctx.account)?;
    if account.is_closed() {
        return Ok(false);
    }
    account.close(tx, ctx.machine_now)?;
    tell(tx, ctx, &account, accounts::CLOSED)?;
    Ok(true)
}

/// Reopens the account; returns whether it was closed. Everything continues where it stopped.
pub(crate) fn reopen(tx: &mut Tx, ctx: &Ctx) -> Result<bool> {
    let account = Account::numbered(tx, ctx.account)?;
    if !account.is_closed() {
        return Ok(false);
    }
    account.close(tx, Moment(0))?;
    jobs::resume(tx)?;
    tell(tx, ctx, &account, accounts::REOPENED)?;
    Ok(true)
}

/// How the row of an account differs from the log.
#[derive(Default)]
pub(crate) struct Differences {
    /// A sentence for each field.
    pub fields: Vec<String>,
    /// A sentence, if only one of them says that it is closed.
    pub closing: Option<String>,
}

/// Compares the row of an account with the first line of its log, or with that of its last change, and with the last line about
/// its closing. A log without them is another problem. A time zone that is not known is not compared: it is another
/// problem, and the account has UTC in its place.
pub(crate) fn differences(tx: &mut Tx, account: &Account, knows_zone: bool) -> Result<Differences> {
    let number = account.number;
    let first = log::line(tx, number, 1)?.filter(|line| line.name == accounts::CREATED);
    let Some(line) = log::latest(tx, number, accounts::UPDATED)?.or(first) else { return Ok(Differences::default()) };
    let logged: serde_json::Value = serde_json::from_str(line.data()).unwrap_or_default();
    let own = account.shown();
    let differing = own.as_object().into_iter().flatten().filter(|(name, own)| {
        let logged = logged.get(name.as_str()).filter(|_| knows_zone || *name != "time_zone");
        logged.is_some_and(|logged| logged != *own)
    });
    let sentence =
        |(name, own)| format!("Changed outside the log: {name} is {own}, but the log says {}", logged[name as &String]);
    let fields = differing.map(sentence).collect();
    let seq = |line: Option<log::Line>| line.map_or(0, |line| line.seq);
    let is_closed = seq(log::latest(tx, number, accounts::CLOSED)?) > seq(log::latest(tx, number, accounts::REOPENED)?);
    let word = |is_closed: bool| if is_closed { "closed" } else { "open" };
    let closing = (is_closed != account.is_closed()).then(|| {
        format!(
            "Changed outside the log: the account is {}, but the log says that it is {}",
            word(account.is_closed()),
            word(is_closed)
        )
    });
    Ok(Differences { fields, closing })
}

/// Logs the row of the account as it is, where it differs from the log.
pub(crate) fn accept(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let account = Account::numbered(tx, ctx.account)?;
    let Differences { fields, closing } = differences(tx, &account, true)?;
    if !fields.is_empty() {
        tell(tx, ctx, &account, accounts::UPDATED)?;
    }
    match (closing, account.is_closed()) {
        (None, _) => Ok(()),
        (Some(_), true) => tell(tx, ctx, &account, accounts::CLOSED),
        (Some(_), false) => {
            jobs::resume(tx)?;
            tell(tx, ctx, &account, accounts::REOPENED)
        }
    }
}

fn tell(tx: &mut Tx, ctx: &Ctx, account: &Account, name: &str) -> Result<()> {
    let data = account.shown().to_string();
    log::append(tx, ctx, &Event { name, entity_type: "account", entity_id: &account.uid, data: &data }).map(drop)
}
