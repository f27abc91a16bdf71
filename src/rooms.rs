//! The one place that knows everybody: the registry, filled.

use std::sync::LazyLock;

use crate::catalogue::{self, Contents, Registry};
use crate::resources::*;
use crate::tables::Guard;
use crate::{automation, outbox, pages, printing, test_clock, timers, usage, webhooks};

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
    migrations: &[
        timers::MIGRATION,
        timers::SINCE,
        outbox::MIGRATION,
        document::pdf::MIGRATION,
        document::DATES,
        document::OWED,
        document::SAID,
        usage::MIGRATION,
    ],
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
    listener: Some(automation::LISTENER),
    on_event: &[timers::note],
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
    after_crash: &[automation::be_careful],
});

/// Installs the registry. Everything that starts the program or a part of it calls this first.
pub fn install() {
    catalogue::install(&REGISTRY);
}
