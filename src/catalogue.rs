//! The registry: everything that the engine runs but does not know. The program fills it once, before anything else, and
//! nothing changes it afterwards.

use std::sync::OnceLock;

use axum::body::Body;
use axum::http::{Request, Response};
use futures_util::future::BoxFuture;
use store::{Migration, Tx};

use crate::accounts::Account;
use crate::app::App;
use crate::clock::Moment;
use crate::config::Config;
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::log::Event;
use crate::record::Record;
use crate::resource::{Resource, Route};
use crate::services::Services;
use crate::{accounts, contents, counters, http, idempotency, jobs, log, marks, nodes, search, site};

/// The routes of one path.
pub type Methods = Vec<&'static Route>;

/// Fills a new account, which has this name.
pub type Fill = fn(&mut Tx, &Ctx, &str) -> Result<()>;

/// Hears of an event of a record, in its transaction.
pub type OnEvent = fn(&mut Tx, &Ctx, &Event) -> Result<()>;

/// Opens what the business shares, on the node with this id.
pub type Open = fn(&Config, &str, &mut Services) -> Result<()>;

/// Everything that the engine runs but does not know.
#[derive(Default)]
pub struct Registry {
    /// Every resource.
    pub resources: Vec<Resource>,
    /// The migrations of tables that belong to no resource.
    pub migrations: &'static [Migration],
    /// Fill a new account, which has this name.
    pub defaults: &'static [Fill],
    /// The areas of the API: `{area}.read` and `{area}.write` are the scopes of keys.
    pub areas: &'static [&'static str],
    /// Who starts work when something happens.
    pub listener: Option<Listener>,
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
    /// Called when the node before this one ended without a goodbye.
    pub after_crash: &'static [fn(&App)],
}

/// Starts work when something happens. Most events start none, so whether anybody listens is asked in the statement that
/// reads the end of the log.
pub struct Listener {
    /// A scalar subquery that counts those who listen: `$1` is the account, `$2` the key of the event.
    pub count: &'static str,
    /// The key under which an event is listened to.
    pub key: fn(&str) -> &str,
    /// Starts the work; the number is that of the event in the log.
    pub start: fn(&mut Tx, &Ctx, &Event, i64) -> Result<()>,
}

/// Refuses to delete a record of another room while it is needed.
pub struct Guard {
    /// The table of the record.
    pub table: &'static str,
    /// An error when the record with this id is needed.
    pub check: fn(&mut Tx, &Ctx, &str) -> Result<()>,
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
    /// What their paths start with, or the one path.
    pub prefix: &'static str,
    /// The path with its placeholders, for the metrics; empty when it is not one of these pages.
    pub route: fn(&str) -> &'static str,
    /// Answers a request.
    pub answer: fn(std::sync::Arc<App>, Request<Body>) -> BoxFuture<'static, Response<Body>>,
}

/// A counter with one label whose values are known beforehand.
pub struct CounterInfo {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// The name of its label.
    pub label: &'static str,
    /// The values of the label. They are there from the start, so that the first one of a kind is seen to be one more.
    pub values: &'static [&'static str],
}

/// A histogram of seconds.
pub struct HistogramInfo {
    /// Its name.
    pub name: &'static str,
    /// What it measures.
    pub help: &'static str,
    /// The upper ends of its buckets.
    pub bounds: &'static [f64],
}

/// A metric: its name, its type, what it says, and its value.
pub type Metric = (&'static str, &'static str, &'static str, u64);

static INSTALLED: OnceLock<(&'static Registry, matchit::Router<Methods>)> = OnceLock::new();

/// Makes `registry` the one that the engine runs; once, before anything else.
pub fn install(registry: &'static Registry) {
    let _ = INSTALLED.set((registry, router(registry)));
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

/// The migrations of the engine's own tables.
const OWN: &[Migration] = &[
    accounts::MIGRATION,
    search::MIGRATION,
    log::MIGRATION,
    idempotency::MIGRATION,
    jobs::MIGRATION,
    jobs::LANES,
    nodes::MIGRATION,
    counters::MIGRATION,
    site::MIGRATION,
    marks::MIGRATION,
    contents::holds::MIGRATION,
    http::limits::MIGRATION,
];

impl Registry {
    /// Every route of every resource.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.resources.iter().flat_map(|resource| &resource.routes)
    }

    /// Every migration, in order.
    pub fn migrations(&self) -> Vec<Migration> {
        let of_resources = self.resources.iter().flat_map(|resource| resource.migrations);
        let mut all: Vec<Migration> = OWN.iter().chain(self.migrations).chain(of_resources).copied().collect();
        all.sort_by_key(|migration| migration.number);
        all
    }

    /// The resource that keeps its records in `table`.
    pub fn of_table(&self, table: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.shape.table == table)
    }

    /// The resource whose records are called `name`.
    pub fn named(&self, name: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.shape.name == name)
    }

    /// What one record of `table` is called.
    pub fn name_of(&self, table: &str) -> &'static str {
        self.of_table(table).map_or("record", |resource| resource.shape.name)
    }

    /// The address of a record.
    pub fn location<R: Record>(&self, record: &R) -> String {
        let path = self.of_table(R::shape().table).map_or("", |resource| resource.path.as_str());
        let parent = R::parent().map(|parent| match (parent.to_db)(record) {
            store::Value::Text(id) => id.into_owned(),
            _ => String::new(),
        });
        format!("{}/{}", path.replace("{id}", &parent.unwrap_or_default()), record.base().id)
    }

    /// Every scope that a key can have; `*` is all of them.
    pub fn scopes(&self) -> Vec<String> {
        let scopes = self.areas.iter().flat_map(|area| [format!("{area}.read"), format!("{area}.write")]);
        scopes.chain(["*".to_string()]).collect()
    }

    /// Refuses to delete a record that something still needs.
    pub fn guard(&self, tx: &mut Tx, ctx: &Ctx, table: &str, id: &str) -> Result<()> {
        self.guards.iter().filter(|guard| guard.table == table).try_for_each(|guard| (guard.check)(tx, ctx, id))
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
