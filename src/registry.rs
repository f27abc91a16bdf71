//! The one place that knows everybody: what the parts of the program add to its mechanisms. Each mechanism is handed its
//! table and knows nothing of who is in it.

use store::Tx;

use crate::app::{OnCrash, Registry, Start};
use crate::automation::{engine, outside};
use crate::collecting::{self, Collect, ProviderNews};
use crate::context::Ctx;
use crate::days::{Days, DueWork};
use crate::error::Result;
use crate::http::keys;
use crate::jobs::{self, Housekeeping, JobKind, Purge};
use crate::leases::LeaseTable;
use crate::log::Event;
use crate::outbox::Deliver;
use crate::resources::document::pdf::DocumentPdf;
use crate::resources::document::{money_due, timers as documents};
use crate::resources::file::DropContent;
use crate::resources::settings::Settings;
use crate::resources::subscription::generate::{self, MakeInvoices};
use crate::resources::verification::{CancelAtProvider, FinishVerification};
use crate::resources::{client, deal, flow, run, ticket, ticket_message};
use crate::timers::{self, Timer};
use crate::webhooks::{self, queue};
use crate::{idempotency, search};

/// All of it.
pub static REGISTRY: Registry = Registry {
    jobs: JOBS,
    leases: LEASES,
    purges: PURGES,
    due_work: DUE_WORK,
    background: BACKGROUND,
    on_crash: ON_CRASH,
};

/// The kinds of job.
pub static JOBS: &[JobKind] = &[
    JobKind::of::<Housekeeping>(),
    JobKind::of::<Days>(),
    JobKind::of::<DropContent>(),
    JobKind::of::<DocumentPdf>(),
    JobKind::of::<Deliver>(),
    JobKind::of::<MakeInvoices>(),
    JobKind::of::<Collect>(),
    JobKind::of::<ProviderNews>(),
    JobKind::of::<FinishVerification>(),
    JobKind::of::<CancelAtProvider>(),
];

/// The tables whose rows are worked on under a lease.
pub static LEASES: &[&LeaseTable] = &[&jobs::LEASES, &run::LEASES, &queue::LEASES];

/// What housekeeping drops when it is old.
pub static PURGES: &[Purge] = &[idempotency::purge, queue::purge, run::purge, flow::purge];

/// What comes with the days, in this order.
pub static DUE_WORK: &[DueWork] =
    &[money_due::LATE_INVOICES, money_due::EXPIRED_QUOTES, generate::DUE, TIMERS_DUE, outside::DUE, collecting::DUE];

/// What runs in the background beside the workers.
pub static BACKGROUND: &[Start] = &[webhooks::start, outside::start, keys::start, search::start];

/// Who wants to know at the start that a process died.
pub static ON_CRASH: &[OnCrash] = &[engine::be_careful];

/// What is said when nothing happens.
pub static TIMERS: &[&Timer<Settings>] = &[
    &deal::STALLED,
    &deal::PHASE_IDLE,
    &deal::CLOSE_DUE,
    &deal::NO_FOLLOWUP,
    &ticket::STALE,
    &ticket_message::UNANSWERED,
    &documents::QUOTE_SILENT,
    &documents::STILL_DRAFT,
    &documents::INVOICE_LATE,
    &client::INACTIVE,
    &client::NO_FOLLOWUP,
];

/// Timers that run out.
const TIMERS_DUE: DueWork = DueWork {
    some: |tx, ctx, slice| {
        let settings = Settings::of(tx, ctx)?;
        timers::run_out(tx, ctx, TIMERS, &settings, slice)
    },
    next_moment: |tx, ctx| {
        let settings = Settings::of(tx, ctx)?;
        timers::next_moment(tx, ctx, TIMERS, &settings)
    },
    ..DueWork::NOTHING
};

/// Something was written in the log.
pub fn on_event(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    timers::note(tx, ctx, TIMERS, event)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::automation::events::is_built_in;

    #[test]
    fn every_kind_of_job_and_every_cause_is_there_once() {
        let kinds: HashSet<&str> = JOBS.iter().map(|kind| kind.kind).collect();
        assert_eq!(kinds.len(), JOBS.len());
        let causes: HashSet<&str> = TIMERS.iter().map(|timer| timer.cause).collect();
        assert_eq!(causes.len(), TIMERS.len());
    }

    #[test]
    fn timers_name_events_that_there_are() {
        for timer in TIMERS {
            for event in timer.armed_by.iter().map(|(event, _)| *event).chain([timer.cause]) {
                assert!(is_built_in(event), "{}: {event}", timer.cause);
            }
        }
    }
}
