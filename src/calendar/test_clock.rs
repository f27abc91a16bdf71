//! The test clock: the time of an account that has one stands still until it is advanced. Advancing it processes
//! everything that becomes due on the way, in order.

use engine::app::App;
use engine::call::{Answer, Call};
use engine::clock::Moment;
use engine::context::{Actor, Ctx};
use engine::due::DueWork;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::input;
use engine::input::Input;
use engine::record::{Body, Fields, REQUIRED, Shape, When};
use engine::records::Work;
use engine::registry::registry;
use engine::resource::{Method, Part, RequestBody, Resource, Returns};
use serde_json::json;
use store::Tx;

use crate::calendar::days;

/// The furthest that a clock can be advanced in one call, in days: ten years.
const FURTHEST: i64 = 3660;

input! {
    /// The time to advance the clock to.
    pub struct Advance;

    /// The time to advance to.
    to: When = REQUIRED.example("\"2026-06-01T09:00:00Z\"");
}

impl Body for Advance {}

static SHAPE: Shape = Shape::new("test_clock", "test_clocks", &["The clock of a test account."]);

const PARTS: &[Part] = &[Part("now", "string", "The current time of the account.")];

/// The resource of the test clock.
pub fn resource() -> Resource {
    Resource::without_records(&SHAPE, "Test clock", "settings", Advance::infos())
        .at("/v1/test-clock")
        .route(Method::Get, "", "Retrieve the time of a test clock", get)
        .returns(Returns::Parts(PARTS))
        .extension()
        .route(Method::Post, "/advance", "Advance the clock and process what becomes due", advance)
        .body::<Advance>(RequestBody::Body)
        .returns(Returns::Parts(PARTS))
        .extension()
}

fn get(_: Call) -> Result<Work> {
    Ok(Box::new(|_, ctx| shown(ctx)))
}

fn shown(ctx: &Ctx) -> Result<Answer> {
    check(ctx)?;
    Ok(Answer::json(&json!({"now": ctx.now.to_string()})))
}

fn check(ctx: &Ctx) -> Result<()> {
    if !ctx.has_test_clock {
        let message = "This account has no test clock. Create an account with --test-clock 2026-01-01T09:00:00Z to advance its clock.";
        return Err(Error::new(Code::Forbidden, message));
    }
    Ok(())
}

/// `POST /v1/test-clock/advance`
fn advance(call: Call) -> Result<Work> {
    let input: Input<Advance> = input::create(&call)?;
    Ok(Box::new(move |_, ctx| {
        check(ctx)?;
        let to = input.record().to.0.unwrap_or(ctx.now);
        let refuse = |message: String| Err(Error::field("to", violation(FieldCode::OutOfRange, message)));
        if to < ctx.now {
            return refuse(format!(
                "is before {}, the current time of the clock; the clock only moves forward",
                ctx.now
            ));
        }
        if to > ctx.now.plus_seconds(FURTHEST * 24 * 3600) {
            return refuse("is more than ten years ahead; advance the clock in steps".to_string());
        }
        let warnings = input.warnings.clone();
        Ok(Answer::after(move |app, caller| {
            move_to(app, caller, to)?;
            let warnings = warnings.clone();
            Ok(Box::new(move |_, ctx| Ok(shown(ctx)?.with_texts("warnings", &warnings))))
        }))
    }))
}

/// Advances the clock from one due moment to the next and does the work at each.
fn move_to(app: &App, caller: &Actor, to: Moment) -> Result<()> {
    let acting = app.acting(caller.account.as_ref().clone(), "test clock");
    loop {
        // One kind of work can create more of another.
        loop {
            days::bring_up_to_date(app, &acting)?;
            if !days::follow(app, &acting)? {
                break;
            }
        }
        let (own, due) = (acting.clone(), registry().due_work);
        let arrived = app.store.write_now(acting.account.number, move |tx| {
            let ctx = own.writing(tx)?;
            step(tx, &ctx, due, to)
        })?;
        if arrived {
            return Ok(());
        }
    }
}

/// Advances the clock to the next due moment, or to the end; returns whether it was already there.
fn step(tx: &mut Tx, ctx: &Ctx, due: &[DueWork], to: Moment) -> Result<bool> {
    if ctx.now >= to {
        return Ok(true);
    }
    let next = days::next_moment(tx, ctx, due)?.filter(|next| *next > ctx.now).map_or(to, |next| next.min(to));
    tx.execute("UPDATE accounts SET test_clock = $1 WHERE id = $2", &[next.0.into(), ctx.account.into()])?;
    Ok(false)
}
