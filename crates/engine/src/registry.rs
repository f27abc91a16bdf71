//! The registry: everything that the engine runs but does not know. The program fills it once, before anything else, and
//! nothing changes it afterwards.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::http::{Request, Response};
use futures_util::future::BoxFuture;
use store::{Migration, Tx};

use crate::accounts::{self, Account};
use crate::ahead::RetryTable;
use crate::app::App;
use crate::clock::Moment;
use crate::config::Config;
use crate::context::Ctx;
use crate::due::DueWork;
use crate::error::{Code, Error, Result};
use crate::http::metrics::counts::{CounterInfo, HistogramInfo, Metric};
use crate::jobs::kind::{JobKind, Purge};
use crate::leases::LeaseTable;
use crate::log::{self, Listener};
use crate::resource::{Resource, Route};
use crate::services::Services;
use crate::tables::{self, Guard, OnEvent, Table};

/// The routes of one path.
pub type Methods = Vec<&'static Route>;

/// Fills a new account, which has this name.
pub type Fill = fn(&mut Tx, &Ctx, &str) -> Result<()>;

/// Starts a loop that runs until the process ends.
pub type Start = fn(&Arc<App>);

/// Opens what the business shares, on the node with this id.
pub type Open = fn(&Config, &str, &mut Services) -> Result<()>;

/// Everything that the engine runs but does not know.
#[derive(Default)]
pub struct Registry {
    /// Every resource.
    pub resources: Vec<Resource>,
    /// The migrations of tables that belong to no resource.
    pub migrations: Vec<Migration>,
    /// Fill a new account, which has this name.
    pub defaults: &'static [Fill],
    /// The areas of the API: `{area}.read` and `{area}.write` are the scopes of keys.
    pub areas: &'static [&'static str],
    /// Who starts work when something happens.
    pub listener: Option<Listener>,
    /// The error codes of each area, beside those that all share.
    pub error_codes: &'static [&'static [Code]],
    /// Called for every event of a record, in its transaction.
    pub on_event: &'static [OnEvent],
    /// Refuse to delete a record that something still needs.
    pub guards: &'static [Guard],
    /// What becomes of the contents of uploads.
    pub contents: Option<Contents>,
    /// Pages outside the API.
    pub pages: &'static [Page],
    /// Counters by one label.
    pub counters: &'static [CounterInfo],
    /// Durations.
    pub histograms: &'static [HistogramInfo],
    /// Numbers that this process knows.
    pub gauges: &'static [fn(&App) -> Metric],
    /// Numbers that the database knows.
    pub stored_gauges: &'static [fn(&mut Tx, Moment) -> Result<Metric>],
    /// Opens what the business shares beside what the engine shares.
    pub services: &'static [Open],
    /// The kinds of job.
    pub jobs: &'static [JobKind],
    /// The tables whose rows are worked on under a lease.
    pub leases: &'static [&'static LeaseTable],
    /// The tables whose rows wait for a retry, beside jobs.
    pub retries: &'static [&'static RetryTable],
    /// What housekeeping drops when it is old.
    pub purges: &'static [Purge],
    /// What comes with the days.
    pub due_work: &'static [DueWork],
    /// What runs in the background beside the workers.
    pub background: &'static [Start],
    /// Who wants to know at the start that a process died.
    pub after_crash: &'static [fn(&App)],
}

/// What becomes of a content that no record has yet.
#[derive(Clone, Copy)]
pub struct Contents {
    /// Called before the first byte is written, so that no crash leaves the content behind; refuses it when there is no room.
    pub announce: fn(&mut Tx, &Ctx, &str) -> Result<()>,
    /// Drops a content that no record came to have.
    pub refuse: fn(&mut Tx, &Ctx, &str) -> Result<()>,
}

/// Pages under a prefix, for visitors without a key.
pub struct Page {
    /// What their paths start with, when it ends in `/`; otherwise the one path.
    pub prefix: &'static str,
    /// The path with its placeholders, for the metrics; empty when it is not one of these pages.
    pub route: fn(&str) -> &'static str,
    /// Answers a request.
    pub answer: fn(Arc<App>, Request<Body>) -> BoxFuture<'static, Response<Body>>,
}

impl Page {
    /// Whether `path` is one of these pages.
    pub fn has(&self, path: &str) -> bool {
        path == self.prefix || (self.prefix.ends_with('/') && path.starts_with(self.prefix))
    }
}

static INSTALLED: OnceLock<(&'static Registry, matchit::Router<Methods>)> = OnceLock::new();

/// Makes `registry` the one that the engine runs; once, before anything else.
pub fn install(registry: &'static Registry) {
    // Whoever comes second waits until the first has handed everything down.
    INSTALLED.get_or_init(|| {
        hand_down(registry);
        (registry, router(registry))
    });
}

/// Hands the layers below the registry what they need of it.
fn hand_down(registry: &'static Registry) {
    accounts::install(registry.areas);
    if let Some(listener) = &registry.listener {
        log::install(listener);
    }
    let table = |resource: &Resource| Table {
        shape: resource.shape,
        path: resource.path.clone(),
        fields: resource.fields.clone(),
        unlink: resource.unlink,
        fleeting: resource.fleeting,
        logged: resource.logged,
    };
    tables::install(registry.resources.iter().map(table).collect(), registry.on_event, registry.guards);
}

/// The registry that was installed; before that, an empty one.
pub fn registry() -> &'static Registry {
    static EMPTY: OnceLock<Registry> = OnceLock::new();
    INSTALLED.get().map_or_else(|| EMPTY.get_or_init(Registry::default), |(registry, _)| registry)
}

/// Every route, by its path.
pub fn routes() -> &'static matchit::Router<Methods> {
    static NONE: OnceLock<matchit::Router<Methods>> = OnceLock::new();
    INSTALLED.get().map_or_else(|| NONE.get_or_init(matchit::Router::new), |(_, routes)| routes)
}

fn router(registry: &'static Registry) -> matchit::Router<Methods> {
    let mut paths: Vec<(&str, Methods)> = Vec::new();
    for route in registry.routes() {
        match paths.iter_mut().find(|(path, _)| *path == route.path) {
            Some((_, methods)) => methods.push(route),
            None => paths.push((&route.path, vec![route])),
        }
    }
    let mut router = matchit::Router::new();
    for (path, methods) in paths {
        let added = router.insert(path, methods);
        debug_assert!(added.is_ok(), "{path} clashes with another route");
    }
    router
}

impl Registry {
    /// Every error code: those that all areas share, and those that an area declares.
    pub fn error_codes(&self) -> Vec<Code> {
        Code::SHARED.iter().chain(self.error_codes.iter().copied().flatten()).copied().collect()
    }

    /// Every route of every resource.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.resources.iter().flat_map(|resource| &resource.routes)
    }

    /// The resource that keeps its records in `table`.
    pub fn of_table(&self, table: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.shape.table == table)
    }

    /// The resource whose records are called `name`.
    pub fn named(&self, name: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.shape.name == name)
    }

    /// Fills a new account.
    pub fn fill(&self, tx: &mut Tx, ctx: &Ctx, account: &Account) -> Result<()> {
        self.defaults.iter().try_for_each(|fill| fill(tx, ctx, &account.name))
    }

    /// What becomes of contents.
    pub fn contents(&self) -> Result<Contents> {
        self.contents.ok_or_else(|| Error::internal("nobody looks after contents"))
    }
}
