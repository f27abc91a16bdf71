//! The registry: the only module that knows all others.

mod examples;

use std::sync::LazyLock;

use engine::ahead::RetryTable;
use engine::context::Ctx;
use engine::due::DueWork;
use engine::error::Result;
use engine::heads;
use engine::http::key_use;
use engine::jobs::{self, Housekeeping, JobKind, Purge};
use engine::leases::LeaseTable;
use engine::log::Event;
use engine::registry::{self, Contents, Registry, Start};
use engine::resource::Resource;
use engine::tables::{Choice, Guard, Holder};
use engine::timers::{self, Timer};
use engine::who::ActorType;
use engine::{idempotency, search};
use store::{Migration, Tx};

use crate::automation::late::MatchLate;
use crate::automation::{
    self, author, backtest, catalogue, flow, run, runner, schedules, secret, trigger, vocabulary, worker,
};
use crate::calendar::days::Days;
use crate::calendar::test_clock;
use crate::documents::pdf::DocumentPdf;
use crate::documents::{
    self, InvoiceKind, QuoteKind, WorkorderKind, hours, leaving, money_due, timers as document_timers,
};
use crate::files::{self, DropContent, usage};
use crate::mail::outcome::Followers;
use crate::mail::{self, Deliver, listed};
use crate::overview::verification::{self as verification_of_log, VerifyLog};
use crate::payments::awaiting_file::{self, FollowClient};
use crate::payments::collecting::{self, Collect, ProviderNews};
use crate::payments::handing_over::{self, HandOver};
use crate::payments::verification::{self, CancelAtProvider, FinishVerification};
use crate::payments::{batch, mandate, payment, providers};
use crate::people::resetting::MailReset;
use crate::people::role::Role;
use crate::people::{
    access, assigned, factor, failures, here, inviting, issuer, me, password, person, preferences, session, throttle,
    token, user,
};
use crate::reading;
use crate::relations::{client, client_link, note, supplier};
use crate::sales::{deal, deal_source, pipeline, product};
use crate::settings::email_domain::check::{self, CheckDomain};
use crate::settings::{
    self, Settings, account, changed_rate, corporate_identity, custom_field, email_domain, payment_term, tax_rate,
};
use crate::subscriptions::generate::{self, MakeInvoices};
use crate::subscriptions::{activation, deleted_products, deleted_rates};
use crate::support::ticket_status::RenameStatus;
use crate::support::{renaming, ticket, ticket_channel, ticket_message, ticket_status};
use crate::transfer::run::RunImport;
use crate::transfer::undo::UndoImport;
use crate::transfer::{export, lines, routes};
use crate::typesetting::{self, turns};
use crate::upkeep::anchor::{self, SendHeads};
use crate::upkeep::disk;
use crate::upkeep::scheduled;
use crate::upkeep::scheduled::state as backups;
use crate::webhooks::ending::EndDeliveries;
use crate::webhooks::{self, change, delivery, endpoint, queue};
use crate::work::{all_hours, hour, project, task};
use crate::{console, keys, overview, pages, people, subscriptions};

/// The registry of the program.
pub static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry {
    resources: with_histories(vec![
        client::resource(),
        client_link::resource(),
        supplier::resource(),
        deal::resource(),
        pipeline::resource(),
        pipeline::phases(),
        deal_source::resource(),
        ticket::resource(),
        ticket_message::resource(),
        ticket_status::resource(renaming::patch_status),
        ticket_channel::resource(),
        hours::billable(project::resource()),
        hour::resource(),
        product::resource(deleted_products::delete),
        task::resource(),
        note::resource(),
        collecting::collectable(hours::releasable(documents::invoices())),
        documents::quotes(),
        documents::workorders(),
        documents::mail_preview::resource(),
        payment::resource(handing_over::patch, handing_over::delete),
        subscriptions::resource(),
        verification::resource(),
        mandate::resource(activation::by_mandate),
        batch::resource(),
        files::resource(),
        tax_rate::resource(changed_rate::patch, deleted_rates::delete),
        corporate_identity::resource(),
        custom_field::resource(),
        email_domain::resource(),
        payment_term::resource(),
        delivery::testable(endpoint::resource()),
        delivery::resource(),
        change::resource(),
        catalogue::resource(),
        settings::resource(),
        account::resource(),
        backtest::testable(flow::resource()),
        run::resource(),
        trigger::by_automation(),
        trigger::by_webhook(),
        secret::resource(),
        vocabulary::resource(),
        test_clock::resource(),
        inviting::resource(),
        keys::resource(),
        me::resource(),
        me::own_sessions(),
        access::resource(),
        failures::resource(),
        here::resource(),
        overview::search::resource(),
        overview::attention::resource(),
        overview::reports::resource(),
        overview::related::of_deals(),
        overview::related::of_projects(),
        overview::verification::resource(),
        listed::resource(|call| listed::retry(call, &FOLLOWERS)),
        all_hours::resource(),
        export::resource(),
        routes::resource(),
    ]),
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
        "finance",
        "automation",
        "webhooks",
        "settings",
        "users",
        "keys",
        "audit",
    ],
    guides: &[
        ("api", include_str!("../docs/api.md")),
        ("records", include_str!("../docs/records.md")),
        ("events", include_str!("../docs/events.md")),
        ("automation", include_str!("../docs/automation.md")),
        ("people", include_str!("../docs/people.md")),
        ("console", include_str!("../docs/console.md")),
        ("import", include_str!("../docs/import.md")),
        ("install", include_str!("../docs/install.md")),
        ("operations", include_str!("../docs/operations.md")),
        ("backup", include_str!("../docs/backup.md")),
        ("scale", include_str!("../docs/scale.md")),
        ("proofs", include_str!("../docs/proofs.md")),
        ("security", include_str!("../docs/security.md")),
        ("performance", include_str!("../docs/performance.md")),
    ],
    needed: examples::NEEDED,
    notes: examples::NOTES,
    error_codes: &[documents::CODES, run::CODES, client_link::CODES, providers::CODES, people::CODES],
    events: catalogue::all(),
    to_read: Some(automation::needs::to_receive),
    described: &[webhooks::openapi::describe],
    listener: Some(automation::LISTENER),
    on_event: &[
        note_timers,
        note_set_up,
        automation::library::follow_language,
        note_hours,
        awaiting_file::follow_client,
    ],
    guards: &[
        Guard { table: "files", check: corporate_identity::guard_logo },
        Guard { table: "files", check: typesetting::guard_pdf },
        Guard { table: "users", check: hour::guard_user },
    ],
    holders: HOLDERS,
    choices: &[Choice { table: "users", unfit: assigned::unfit }],
    contents: Some(Contents { announce: files::announce, refuse: files::drop_now }),
    pages: &[pages::PAGES, console::PAGES],
    pages_version: Some(console::version),
    addresses: Some(user::active_emails),
    user: Some(session::author),
    sessions: Some(session::SESSIONS),
    counters: &[
        automation::metrics::RUNS,
        automation::metrics::CALLS,
        webhooks::metrics::DELIVERIES,
        mail::outcome::MAILS,
        failures::FAILED,
    ],
    histograms: &[webhooks::metrics::SECONDS, mail::outcome::SECONDS],
    gauges: &[typesetting::typeset_count, automation::metrics::calls_open, disk::free, scheduled::is_scheduled],
    stored_gauges: &[
        automation::metrics::behind,
        webhooks::metrics::behind,
        webhooks::metrics::down,
        mail::outcome::waiting,
        backups::made,
        backups::bytes,
        backups::proven,
        backups::failures,
    ],
    services: &[
        turns::open,
        reading::open,
        mail::open,
        |_, _, services| {
            services.add(FOLLOWERS);
            Ok(())
        },
        automation::open,
        webhooks::open,
        check::open,
        password::open,
        throttle::open,
        issuer::open,
        scheduled::open,
        export::open,
    ],
    jobs: JOBS,
    leases: LEASES,
    retries: RETRIES,
    pull_back: &[("flows", schedules::pull_back)],
    purges: PURGES,
    due_work: DUE_WORK,
    background: BACKGROUND,
    secrets: &[settings::MOLLIE_KEY, endpoint::SECRET, endpoint::OLD_SECRET, factor::SECRET, mail::link::LINK],
    after_crash: &[runner::be_careful],
});

/// What keeps a client from being deleted. A deal requires a client, and a client who pays for a verification expects a
/// mandate.
static HOLDERS: &[Holder] = &[
    of_client("invoices", "invoices_clients", leaving::when_final, ("final invoice", "final invoices")),
    of_client("quotes", "quotes_clients", leaving::when_final, ("final quote", "final quotes")),
    of_client("workorders", "workorders_clients", leaving::when_final, ("final workorder", "final workorders")),
    of_client(
        "subscriptions",
        "subscriptions_client",
        subscriptions::when_live,
        ("subscription that has not ended", "subscriptions that have not ended"),
    ),
    of_client("deals", "deals_client", String::new, ("deal", "deals")),
    of_client(
        "verifications",
        "verifications_client",
        verification::when_under_way,
        ("pending direct debit verification", "pending direct debit verifications"),
    ),
];

const fn of_client(
    by: &'static str,
    index: &'static str,
    when: fn() -> String,
    what: (&'static str, &'static str),
) -> Holder {
    Holder { table: "clients", by, field: "client_id", index, when, what }
}

/// The records that follow the mail about them.
const FOLLOWERS: Followers = Followers {
    author_may: author::may,
    records: &[
        documents::mail::follower::<InvoiceKind>(),
        documents::mail::follower::<QuoteKind>(),
        documents::mail::follower::<WorkorderKind>(),
        ticket_message::FOLLOWER,
    ],
};

/// Adds the route of the history to every resource that has one.
fn with_histories(resources: Vec<Resource>) -> Vec<Resource> {
    resources.into_iter().map(|resource| resource.with_history(change::MEMBERS)).collect()
}

/// The migrations of tables that belong to no resource, or to several.
fn migrations() -> Vec<Migration> {
    let own = [
        timers::MIGRATION,
        usage::MIGRATION,
        mail::MIGRATION,
        mail::link::MIGRATION,
        person::MIGRATION,
        factor::MIGRATION,
        preferences::MIGRATION,
        here::MIGRATION,
        failures::MIGRATION,
        documents::REVENUE,
        documents::pdf::MIGRATION,
        verification_of_log::MIGRATION,
        lines::MIGRATION,
        backups::MIGRATION,
    ];
    let all = own.into_iter();
    #[cfg(test)]
    let all = all.chain([crate::declared::MIGRATION]);
    all.collect()
}

/// Installs the registry. Everything that starts the program or a part of it calls this first.
pub fn install() {
    registry::install(&REGISTRY);
}

/// The job types.
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
    JobKind::of::<RenameStatus>(),
    JobKind::of::<HandOver>(),
    JobKind::of::<FollowClient>(),
    JobKind::of::<MatchLate>(),
    JobKind::of::<EndDeliveries>(),
    JobKind::of::<CheckDomain>(),
    JobKind::of::<MailReset>(),
    JobKind::of::<SendHeads>(),
    JobKind::of::<RunImport>(),
    JobKind::of::<UndoImport>(),
    JobKind::of::<VerifyLog>(),
];

/// The tables whose rows are processed under a lease.
static LEASES: &[&LeaseTable] = &[&jobs::LEASES, &run::LEASES, &queue::LEASES, &backups::LEASES];

/// The tables whose rows wait for a retry.
static RETRIES: &[&RetryTable] = &[&run::RETRIES, &queue::RETRIES];

/// The functions that delete expired data.
static PURGES: &[Purge] = &[
    idempotency::purge,
    queue::purge,
    run::purge,
    flow::purge,
    session::purge,
    token::purge,
    throttle::purge,
    failures::purge,
    factor::purge,
    mail::link::purge,
];

/// The daily work, in this order.
static DUE_WORK: &[DueWork] = &[
    money_due::LATE_INVOICES,
    money_due::EXPIRED_QUOTES,
    generate::DUE,
    TIMERS_DUE,
    worker::DUE,
    collecting::DUE,
    mail::waiting::DUE,
    check::DUE,
];

/// The background tasks besides the workers.
static BACKGROUND: &[Start] =
    &[webhooks::start, worker::start, key_use::start, search::start, heads::start, scheduled::start, anchor::start];

/// The timers.
static TIMERS: &[&Timer<Settings>] = &[
    &deal::STALLED,
    &deal::PHASE_IDLE,
    &deal::CLOSE_DUE,
    &deal::NO_FOLLOWUP,
    &ticket::STALE,
    &ticket_message::UNANSWERED,
    &document_timers::QUOTE_SILENT,
    &document_timers::STILL_DRAFT,
    &money_due::INVOICE_LATE,
    &client::INACTIVE,
    &client::NO_FOLLOWUP,
];

/// The due work of timers.
const TIMERS_DUE: DueWork = DueWork {
    process_batch: |tx, ctx, slice| {
        let settings = Settings::of(tx, ctx)?;
        timers::run_out(tx, ctx, TIMERS, &settings, slice)
    },
    next_moment: |tx, ctx| {
        let settings = Settings::of(tx, ctx)?;
        timers::next_moment(tx, ctx, TIMERS, &settings)
    },
    ..DueWork::NOTHING
};

/// Arms and disarms timers after an event.
fn note_timers(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    timers::note(tx, ctx, TIMERS, event)
}

/// Lets mail that waits follow the office hours.
fn note_hours(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    mail::waiting::follow_hours(tx, ctx, event, &FOLLOWERS)
}

/// An account whose first owner signs up in the browser is used by people, who may forget what an integration does not.
fn note_set_up(tx: &mut Tx, ctx: &Ctx, event: &Event) -> Result<()> {
    if event.name != "user.created" || ctx.actor.kind != ActorType::Visitor {
        return Ok(());
    }
    let user: serde_json::Value = serde_json::from_str(event.data).unwrap_or_default();
    if user["role"] != Role::Owner.wire() {
        return Ok(());
    }
    let language = user["language"].as_str().and_then(settings::Language::from_wire).unwrap_or_default();
    Settings::be_set_up(tx, ctx, language)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::automation::events::is_built_in;

    #[test]
    fn job_kinds_and_timer_causes_are_unique() {
        let kinds: HashSet<&str> = JOBS.iter().map(|kind| kind.kind).collect();
        assert_eq!(kinds.len(), JOBS.len());
        let causes: HashSet<&str> = TIMERS.iter().map(|timer| timer.cause).collect();
        assert_eq!(causes.len(), TIMERS.len());
    }

    #[test]
    fn timers_use_existing_events() {
        install();
        for timer in TIMERS {
            for event in timer.armed_by.iter().map(|(event, _)| *event).chain([timer.cause]) {
                assert!(is_built_in(event), "{}: {event}", timer.cause);
            }
        }
    }
}
