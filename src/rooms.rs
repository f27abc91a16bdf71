//! The one place that knows everybody: the registry, filled.

use std::sync::LazyLock;

use store::{Migration, Tx};

use crate::automation::{engine, outside};
use crate::catalogue::Start;
use crate::catalogue::{self, Contents, Registry};
use crate::collecting::{self, Collect, ProviderNews};
use crate::context::Ctx;
use crate::days::Days;
use crate::due::DueWork;
use crate::error::Result;
use crate::http::key_use;
use crate::jobs::{self, Housekeeping, JobKind, Purge};
use crate::leases::LeaseTable;
use crate::log::Event;
use crate::outbox::Deliver;
use crate::resources::document::pdf::DocumentPdf;
use crate::resources::document::{money_due, timers as document_timers};
use crate::resources::file::DropContent;
use crate::resources::settings::Settings;
use crate::resources::subscription::generate::{self, MakeInvoices};
use crate::resources::verification::{CancelAtProvider, FinishVerification};
use crate::resources::*;
use crate::tables::Guard;
use crate::timers::Timer;
use crate::webhooks::queue;
use crate::{automation, outbox, pages, printing, test_clock, timers, usage, webhooks};
use crate::{idempotency, providers, search};

/// The registry of the program.
pub static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry {
    resources: vec![
        client::resource(),
        client_link::resource(),
        supplier::resource(),
        deal::resource(),
        pipeline::resource(),
        phase::resource(),
        deal_source::resource(),
        ticket::resource(),
        ticket_message::resource(),
        ticket_status::resource(),
        ticket_channel::resource(),
        project::resource(),
        hour::resource(),
        product::resource(subscription::deleted_products::delete),
        task::resource(),
        note::resource(),
        payment::collectable(document::invoices()),
        document::quotes(),
        document::workorders(),
        payment::resource(),
        subscription::resource(),
        verification::resource(),
        mandate::resource(subscription::activation::by_mandate),
        batch::resource(),
        file::resource(),
        tax_rate::resource(subscription::deleted_rates::delete),
        corporate_identity::resource(),
        custom_field::resource(),
        email_domain::resource(),
        payment_term::resource(),
        webhook_endpoint::resource(),
        webhook_delivery::resource(),
        change::resource(),
        settings::resource(),
        flow::resource(),
        run::resource(),
        automation::trigger::by_automation(),
        automation::trigger::by_webhook(),
        automation::secret::resource(),
        test_clock::resource(),
    ],
    migrations: migrations(),
    defaults: &[
        |tx, ctx, _| settings::defaults(tx, ctx),
        |tx, ctx, _| tax_rate::defaults(tx, ctx),
        |tx, ctx, _| payment_term::defaults(tx, ctx),
        corporate_identity::defaults,
        |tx, ctx, _| pipeline::defaults(tx, ctx),
        |tx, ctx, _| deal_source::defaults(tx, ctx),
        |tx, ctx, _| ticket_status::defaults(tx, ctx),
        |tx, ctx, _| ticket_channel::defaults(tx, ctx),
        |tx, ctx, _| automation::library::defaults(tx, ctx),
    ],
    areas: &[
        "invoices",
        "relations",
        "tickets",
        "deals",
        "projects",
        "products",
        "tasks",
        "notes",
        "files",
        "automation",
        "webhooks",
        "settings",
        "keys",
        "audit",
    ],
    error_codes: &[document::CODES, run::CODES, client_link::CODES, providers::CODES],
    listener: Some(automation::LISTENER),
    on_event: &[note_timers],
    guards: &[
        Guard { table: "files", check: corporate_identity::guard_logo },
        Guard { table: "files", check: printing::guard_pdf },
    ],
    contents: Some(Contents { announce: file::announce, refuse: file::drop_now }),
    pages: pages::PAGES,
    counters: &[automation::metrics::RUNS, automation::metrics::CALLS, webhooks::metrics::DELIVERIES],
    histograms: &[webhooks::metrics::SECONDS],
    gauges: &[printing::typeset_count, automation::metrics::calls_open],
    stored_gauges: &[automation::metrics::behind, webhooks::metrics::behind, webhooks::metrics::down],
    services: &[printing::open, outbox::open, automation::open],
    jobs: JOBS,
    leases: LEASES,
    purges: PURGES,
    due_work: DUE_WORK,
    background: BACKGROUND,
    after_crash: &[engine::be_careful],
});

/// The migrations of tables that belong to no resource, or to several.
fn migrations() -> Vec<Migration> {
    let own = [timers::MIGRATION, outbox::MIGRATION, document::pdf::MIGRATION, usage::MIGRATION];
    let all = own.into_iter().chain(document::MIGRATIONS.iter().copied());
    #[cfg(test)]
    let all = all.chain([declared::MIGRATION]);
    all.collect()
}

/// Installs the registry. Everything that starts the program or a part of it calls this first.
pub fn install() {
    catalogue::install(&REGISTRY);
}

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
static LEASES: &[&LeaseTable] = &[&jobs::LEASES, &run::LEASES, &queue::LEASES];

/// What housekeeping drops when it is old.
static PURGES: &[Purge] = &[idempotency::purge, queue::purge, run::purge, flow::purge];

/// What comes with the days, in this order.
static DUE_WORK: &[DueWork] =
    &[money_due::LATE_INVOICES, money_due::EXPIRED_QUOTES, generate::DUE, TIMERS_DUE, outside::DUE, collecting::DUE];

/// What runs in the background beside the workers.
static BACKGROUND: &[Start] = &[webhooks::start, outside::start, key_use::start, search::start];

/// What is said when nothing happens.
static TIMERS: &[&Timer<Settings>] = &[
    &deal::STALLED,
    &deal::PHASE_IDLE,
    &deal::CLOSE_DUE,
    &deal::NO_FOLLOWUP,
    &ticket::STALE,
    &ticket_message::UNANSWERED,
    &document_timers::QUOTE_SILENT,
    &document_timers::STILL_DRAFT,
    &document_timers::INVOICE_LATE,
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
fn note_timers(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
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
        install();
        for timer in TIMERS {
            for event in timer.armed_by.iter().map(|(event, _)| *event).chain([timer.cause]) {
                assert!(is_built_in(event), "{}: {event}", timer.cause);
            }
        }
    }
}
