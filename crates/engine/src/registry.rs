//! The registry: everything that the business code adds to the engine. The program fills it once at its start, and it
//! never changes afterwards.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::http::{Request, Response};
use futures_util::future::BoxFuture;
use serde_json::Value;
use store::{Migration, Tx};

use crate::accounts::{self, Account, Key};
use crate::ahead::RetryTable;
use crate::app::App;
use crate::clock::Moment;
use crate::config::Config;
use crate::context::Ctx;
use crate::due::DueWork;
use crate::error::{Code, Error, Result};
use crate::http::keys::Find;
use crate::http::metrics::counts::{CounterInfo, HistogramInfo, Metric};
use crate::jobs::kind::{JobKind, Purge};
use crate::leases::LeaseTable;
use crate::log::{self, EventType, Listener};
use crate::resource::{Resource, Route};
use crate::secrets::columns::SecretColumn;
use crate::services::Services;
use crate::tables::{self, Choice, Guard, Holder, OnEvent, Table};

/// The routes of one path.
pub type Methods = Vec<&'static Route>;

/// Fills a new account with this name.
pub type Fill = fn(&mut Tx, &Ctx, &str) -> Result<()>;

/// Starts a loop that runs until the process ends.
pub type Start = fn(&Arc<App>);

/// Opens a service of the business code, on the node with this id.
pub type Open = fn(&Config, &str, &mut Services) -> Result<()>;

/// Finds the addresses of the users of an account.
pub type FindAddresses = fn(&mut Tx, &Ctx) -> Result<Vec<String>>;

/// Finds a user of the account with this number by id, as the key that a session of the user stands for; none if the user
/// has no access.
pub type FindUser = fn(&mut Tx, i64, &str) -> Result<Option<Key>>;

/// What the examples of some operations need: records that they find or make first, in this order.
pub struct Needed {
    /// The operations, by their ids in the OpenAPI document.
    pub operations: &'static [&'static str],
    /// The records.
    pub lookups: &'static [Lookup],
}

/// A record that an example needs, as a variable of the shell.
#[derive(Clone, Copy)]
pub struct Lookup {
    /// The variable.
    pub name: &'static str,
    /// The list in which it is the first, or the route that makes it. Earlier variables may be used.
    pub path: &'static str,
    /// The method of the route that makes it, or an empty string for a list.
    pub method: &'static str,
    /// The body that makes it, or none.
    pub body: &'static str,
    /// The lines of a table that is uploaded instead of a body, or none.
    pub table: &'static str,
    /// The member of the response that has the id.
    pub key: &'static str,
}

impl Lookup {
    /// The first record of a list.
    pub const fn found(name: &'static str, path: &'static str) -> Lookup {
        Lookup { name, path, method: "", body: "", table: "", key: "id" }
    }

    /// A new file with these lines of a table.
    pub const fn uploaded(name: &'static str, table: &'static str) -> Lookup {
        Lookup { table, ..Lookup::made(name, "/v1/files", "") }
    }

    /// A member of a record that is changed.
    pub const fn changed(name: &'static str, path: &'static str, body: &'static str, key: &'static str) -> Lookup {
        Lookup { name, path, method: "PATCH", body, table: "", key }
    }

    /// A new record.
    pub const fn made(name: &'static str, path: &'static str, body: &'static str) -> Lookup {
        Lookup { name, path, method: "POST", body, table: "", key: "id" }
    }
}

/// Everything that the business code adds to the engine.
#[derive(Default)]
pub struct Registry {
    /// All resources.
    pub resources: Vec<Resource>,
    /// The migrations of tables that belong to no resource.
    pub migrations: Vec<Migration>,
    /// Fill a new account with this name.
    pub defaults: &'static [Fill],
    /// The areas of the API: `{area}.read` and `{area}.write` are the scopes of keys.
    pub areas: &'static [&'static str],
    /// Every type of event, sorted by name.
    pub events: Vec<EventType>,
    /// Returns the scopes that reading a log line requires, by the name of its event and the type of its record.
    pub to_read: Option<ToRead>,
    /// Adds to the OpenAPI document.
    pub described: &'static [fn(&mut Value)],
    /// The guides of the API reference: their names and their Markdown.
    pub guides: &'static [(&'static str, &'static str)],
    /// What the examples of the API reference need.
    pub needed: &'static [Needed],
    /// What callers must know before the examples of these operations.
    pub notes: &'static [(&'static [&'static str], &'static str)],
    /// Starts work when an event happens.
    pub listener: Option<Listener>,
    /// The error codes of each area, in addition to the shared ones.
    pub error_codes: &'static [&'static [Code]],
    /// Called for every event of a record, in its transaction.
    pub on_event: &'static [OnEvent],
    /// Reject the deletion of a record that is still needed.
    pub guards: &'static [Guard],
    /// The records that keep others from being deleted.
    pub holders: &'static [Holder],
    /// Reject references to records that exist, but cannot be chosen.
    pub choices: &'static [Choice],
    /// Handles the contents of uploads.
    pub contents: Option<Contents>,
    /// Pages outside the API.
    pub pages: &'static [&'static [Page]],
    /// Returns the version of the pages, which responses to sessions name: an open page then knows that it is outdated.
    pub pages_version: Option<fn() -> &'static str>,
    /// Returns the addresses of the users of an account who can sign in, those of its owners first.
    pub addresses: Option<FindAddresses>,
    /// Finds the users that are authors.
    pub user: Option<FindUser>,
    /// The sessions of people, who call the API without a key.
    pub sessions: Option<Sessions>,
    /// Counters with one label.
    pub counters: &'static [CounterInfo],
    /// Durations.
    pub histograms: &'static [HistogramInfo],
    /// Metrics of this process.
    pub gauges: &'static [fn(&App) -> Metric],
    /// Metrics of the database.
    pub stored_gauges: &'static [fn(&mut Tx, Moment) -> Result<Metric>],
    /// Opens the services of the business code.
    pub services: &'static [Open],
    /// The job types.
    pub jobs: &'static [JobKind],
    /// The tables whose rows are processed under a lease.
    pub leases: &'static [&'static LeaseTable],
    /// The tables whose rows wait for a retry, beside jobs.
    pub retries: &'static [&'static RetryTable],
    /// The functions that reschedule what a wrong clock moved too far ahead, each with the name of its table.
    pub pull_back: &'static [(&'static str, PullBack)],
    /// The functions that delete expired data.
    pub purges: &'static [Purge],
    /// The work that becomes due as time passes.
    pub due_work: &'static [DueWork],
    /// The background tasks besides the workers.
    pub background: &'static [Start],
    /// The columns with encrypted text.
    pub secrets: &'static [SecretColumn],
    /// Called at the start if a process died.
    pub after_crash: &'static [fn(&App)],
}

/// Reschedules what a wrong clock moved too far ahead; returns how many rows there were.
pub type PullBack = fn(&App) -> Result<u64>;

/// Handles contents without a record.
#[derive(Clone, Copy)]
pub struct Contents {
    /// Called before the first byte is written, so that a crash leaves nothing behind; rejects the content if there is
    /// no room.
    pub announce: fn(&mut Tx, &Ctx, &str) -> Result<()>,
    /// Deletes a content that no record refers to.
    pub refuse: fn(&mut Tx, &Ctx, &str) -> Result<()>,
}

/// Records when sessions were used, by their ids.
pub type Used = fn(&mut Tx, &[(String, Moment)]) -> Result<()>;

/// The sessions of people. A session calls the routes of the API under its own prefix, like a key.
#[derive(Clone, Copy)]
pub struct Sessions {
    /// The prefix of the paths that accept a session, and no key: `/console` for `/console/v1/…`.
    pub prefix: &'static str,
    /// Returns the session with this hash, as the key that it stands for.
    pub find: Find,
    /// Records when sessions were used, by their ids.
    pub used: Used,
    /// Rejects a dangerous action of the session with this id if its person has not recently proven who they are.
    pub check_confirmed: fn(&mut Tx, &Ctx, &str) -> Result<()>,
}

/// Pages under a prefix, for visitors without a key.
pub struct Page {
    /// The prefix of their paths, if it ends in `/`; otherwise the path itself. `/` alone stands for all paths that nobody
    /// else has.
    pub prefix: &'static str,
    /// Returns the path with placeholders, for the metrics; empty if it is not one of these pages.
    pub route: fn(&str) -> &'static str,
    /// Handles a request.
    pub answer: fn(Arc<App>, Request<Body>) -> BoxFuture<'static, Response<Body>>,
}

impl Page {
    /// Whether `path` is one of these pages.
    pub fn has(&self, path: &str) -> bool {
        path == self.prefix || (self.prefix.ends_with('/') && path.starts_with(self.prefix))
    }
}

static INSTALLED: OnceLock<(&'static Registry, matchit::Router<Methods>)> = OnceLock::new();

/// Installs the registry that the engine runs; once, at the start of the program.
pub fn install(registry: &'static Registry) {
    // A second caller waits until the first has completed.
    INSTALLED.get_or_init(|| {
        hand_down(registry);
        (registry, router(registry))
    });
}

/// Passes parts of the registry to the layers below it.
fn hand_down(registry: &'static Registry) {
    accounts::install(registry.areas);
    log::declare(&registry.events);
    if let Some(listener) = &registry.listener {
        log::install(listener);
    }
    let table = |resource: &Resource| Table {
        shape: resource.shape,
        path: resource.path.clone(),
        fields: resource.fields.clone(),
        relink: resource.relink,
        relinks_last: resource.relinks_last,
        stored: resource.stored,
        fleeting: resource.fleeting,
        logged: resource.logged,
        guarded: resource.guarded,
    };
    let tables = registry.resources.iter().map(table).collect();
    tables::install(tables, registry.on_event, registry.guards, registry.holders, registry.choices);
}

/// Returns the installed registry, or an empty one.
pub fn registry() -> &'static Registry {
    static EMPTY: OnceLock<Registry> = OnceLock::new();
    INSTALLED.get().map_or_else(|| EMPTY.get_or_init(Registry::default), |(registry, _)| registry)
}

/// Rejects a dangerous action of a person who has not recently proven who they are: somebody else may sit at their
/// screen. Keys and the program itself are not asked.
pub fn check_confirmed(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let session = ctx.key.as_ref().map_or("", |key| key.session.as_str());
    match registry().sessions.filter(|_| !session.is_empty()) {
        Some(sessions) => (sessions.check_confirmed)(tx, ctx, session),
        None => Ok(()),
    }
}

/// Returns all routes, by path.
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

/// Returns the scopes that reading a log line requires, by the name of its event and the type of its record.
pub type ToRead = fn(&str, &str) -> BTreeSet<String>;

/// Which log lines a caller may read. It remembers the answers: there are few types of events.
pub struct LineReader<M: Fn(&str) -> bool> {
    may: M,
    known: HashMap<String, HashMap<String, bool>>,
}

impl<M: Fn(&str) -> bool> LineReader<M> {
    /// Of a caller who has the scopes for which `may` is true.
    pub fn new(may: M) -> LineReader<M> {
        LineReader { may, known: HashMap::new() }
    }

    /// Whether the caller may read everything.
    pub fn reads_all(&self) -> bool {
        registry().to_read.is_none() || (self.may)("*")
    }

    /// Whether the caller may read a line of this event, about this type of record.
    pub fn may_read(&mut self, event: &str, kind: &str) -> bool {
        let Some(to_read) = registry().to_read.filter(|_| !(self.may)("*")) else { return true };
        if let Some(known) = self.known.get(event).and_then(|known| known.get(kind)) {
            return *known;
        }
        let may = to_read(event, kind).iter().all(|scope| (self.may)(scope));
        self.known.entry(event.to_string()).or_default().insert(kind.to_string(), may);
        may
    }
}

impl Registry {
    /// Returns all error codes: the shared ones, and those of each area.
    pub fn error_codes(&self) -> Vec<Code> {
        Code::SHARED.iter().chain(self.error_codes.iter().copied().flatten()).copied().collect()
    }

    /// Returns every route of every resource.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.resources.iter().flat_map(|resource| &resource.routes)
    }

    /// Returns the pages that have a path.
    pub fn page(&self, path: &str) -> Option<&'static Page> {
        self.pages.iter().flat_map(|pages| pages.iter()).find(|page| page.has(path))
    }

    /// Returns the resource of a table.
    pub fn of_table(&self, table: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.shape.table == table)
    }

    /// Returns the resource whose records have this name.
    pub fn named(&self, name: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.shape.name == name)
    }

    /// Returns the type of event with this name.
    pub fn event(&self, name: &str) -> Option<&EventType> {
        let found = self.events.binary_search_by(|own| own.name.as_str().cmp(name));
        found.ok().and_then(|at| self.events.get(at))
    }

    /// Fills a new account.
    pub fn fill(&self, tx: &mut Tx, ctx: &Ctx, account: &Account) -> Result<()> {
        self.defaults.iter().try_for_each(|fill| fill(tx, ctx, &account.name))
    }

    /// Returns the handler of contents.
    pub fn contents(&self) -> Result<Contents> {
        self.contents.ok_or_else(|| Error::internal("the registry has no handler of contents"))
    }
}
