//! A resource: a record with its routes, and what the rest of the program needs to know about it.

mod builder;

use store::{Migration, Tx};

use crate::call::{Call, Query};
use crate::context::Ctx;
use crate::error::Result;
use crate::inspect::Inspected;
use crate::inspect::lines::Lines;
use crate::list::batch::ReadBatch;
use crate::list::{self, Form, Statements};
pub use crate::record::Part;
use crate::record::{FieldInfo, LIST, Record, Shape, Views};
use crate::records::{Accepted, RemoveTogether, Work};
use crate::tables::{Logged, RelinkRecords};

/// The method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are what they say")]
pub enum Method {
    Get,
    Post,
    Patch,
    Put,
    Delete,
}

impl Method {
    /// Returns its HTTP name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// A route that most resources have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `GET /v1/…` in pages.
    List,
    /// `GET /v1/…` of a short list, without pages.
    All,
    /// `POST /v1/…`
    Create,
    /// `GET /v1/…/{id}`
    Get,
    /// `PATCH /v1/…/{id}`
    Patch,
    /// `DELETE /v1/…/{id}`, without a body in the response.
    Delete,
}

/// The body of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// No body.
    Nothing,
    /// The fields of a new record.
    Create,
    /// The changeable fields, of which at least one.
    Patch,
    /// Its own fields.
    Body,
    /// Its own fields, or no body.
    Maybe,
    /// A file, as multipart/form-data.
    File,
}

/// The response of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// A page of records.
    Page,
    /// A page of records of another table.
    PageOf(&'static str),
    /// All records.
    All,
    /// All records, or a page on request.
    Either,
    /// The record, in a view.
    Item(Views),
    /// A new record, in a view.
    Made(Views),
    /// A new record of another table.
    CreatedOf(&'static str),
    /// Only these members.
    Parts(&'static [Part]),
    /// Only these members, of a new record.
    CreatedParts(&'static [Part]),
    /// Only these members, of work that goes on after the response.
    StartedParts(&'static [Part]),
    /// A list of these.
    ListOfParts(&'static [Part]),
    /// A list of these that depends on parameters: members and parameters.
    Found(&'static [Part], &'static [Part]),
    /// Only these members, which depend on parameters: members and parameters.
    Report(&'static [Part], &'static [Part]),
    /// Events after a sequence number: members and parameters.
    Feed(&'static [Part], &'static [Part]),
    /// A page of events: members and parameters.
    PageOfEvents(&'static [Part], &'static [Part]),
    /// Events as they happen: parameters.
    Stream(&'static [Part]),
    /// A content that is not JSON.
    Content,
    /// No body.
    Nothing,
}

/// Parses a request outside the transaction, and returns the work to do inside it.
pub type Handler = fn(Call) -> Result<Work>;

/// A route.
pub struct Route {
    /// Its method.
    pub method: Method,
    /// Its path, with `{id}`.
    pub path: String,
    /// The required scope.
    pub scope: String,
    /// Its summary in the documentation.
    pub summary: String,
    /// Whether it is an addition to the contract.
    pub extension: bool,
    /// What it takes in its body.
    pub body: RequestBody,
    /// The fields of its body.
    pub fields: Vec<FieldInfo>,
    /// Its response.
    pub returns: Returns,
    /// The query parameters of a route whose response is not described by members.
    pub query: &'static [Part],
    /// A query parameter with which a GET performs an action, and the scope that this requires.
    pub acts_with: Option<(&'static str, &'static str)>,
    /// An additional required scope.
    pub also_needs: Option<&'static str>,
    /// A scope that is enough in place of `scope`.
    pub instead: Option<&'static str>,
    /// Whether it has the strict rate limit of the trigger route, across all nodes.
    pub scarce: bool,
    /// Whether it may visit many records even without a filter: a report, for example.
    pub visits_many: bool,
    /// Whether the `meta` of its responses can have members, such as `warnings`.
    pub has_meta: bool,
    /// Parses the request outside the transaction, and returns the work to do inside it.
    pub handler: Handler,
}

impl Route {
    /// Whether it returns a list of records.
    pub fn lists(&self) -> bool {
        matches!(
            self.returns,
            Returns::Page
                | Returns::PageOf(_)
                | Returns::PageOfEvents(..)
                | Returns::All
                | Returns::Either
                | Returns::Feed(..)
        )
    }

    /// Whether its response depends on a query parameter of this name. Lists know their own.
    pub fn takes(&self, name: &str) -> bool {
        self.parameters().any(|own| own == name)
    }

    /// Returns its query parameters, unless it is a list.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        let query = match self.returns {
            Returns::Found(_, query) | Returns::Report(_, query) | Returns::Stream(query) => query,
            _ => self.query,
        };
        let acts = self.acts_with.map(|(parameter, _)| parameter);
        query.iter().map(|Part(name, ..)| *name).chain(acts)
    }

    /// Returns the first scope that a caller lacks.
    pub fn lacks(&self, may: impl Fn(&str) -> bool) -> Option<&str> {
        let has = |scope: &str| may(scope) || scope == self.scope && self.instead.is_some_and(&may);
        self.scopes().find(|scope| !has(scope))
    }

    /// Returns every scope that it requires.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        Some(self.scope.as_str()).filter(|scope| !scope.is_empty()).into_iter().chain(self.also_needs)
    }

    /// Whether it never writes.
    pub fn reads(&self) -> bool {
        self.method == Method::Get && self.acts_with.is_none()
    }

    /// Whether it does not write for this query.
    pub fn reads_for(&self, query: &Query) -> bool {
        self.method == Method::Get && self.acts_with.is_none_or(|(parameter, _)| query.get(parameter).is_none())
    }
}

/// The list of a resource, for the documentation and tests.
pub struct List {
    /// Whether it supports `search`.
    pub searches: bool,
    /// The fields that it can be sorted by.
    pub sorts: Vec<&'static str>,
    /// The fields that it can add up.
    pub sums: Vec<&'static str>,
    /// Returns the statements of a query.
    pub statements: fn(&Call, &mut Tx, &Ctx) -> Result<Statements>,
}

impl List {
    fn of<R: Record>() -> List {
        List {
            searches: R::layout().is_searched(),
            sorts: list::sorts(&R::layout()),
            sums: list::sums::names(&R::layout()),
            statements: |call, tx, ctx| {
                let layout = R::layout();
                list::ListQuery::read(&layout, call, Form::Pages)?.statements(&layout, tx, ctx)
            },
        }
    }

    fn across<R: Record>() -> List {
        let statements = |call: &Call, tx: &mut Tx, ctx: &Ctx| {
            let layout = R::layout();
            list::ListQuery::across(&layout, call)?.statements(&layout, tx, ctx)
        };
        List { statements, ..List::of::<R>() }
    }
}

/// A resource: a record with its routes.
pub struct Resource {
    /// The area of its scopes.
    pub area: &'static str,
    /// The area of the scope for changes, if it differs.
    pub write_area: &'static str,
    /// Its title in the documentation.
    pub title: &'static str,
    /// The static description of the record.
    pub shape: &'static Shape,
    /// The path of its list.
    pub path: String,
    /// The fields of the record.
    pub fields: Vec<FieldInfo>,
    /// Its routes.
    pub routes: Vec<Route>,
    /// Its list, if it has one.
    pub list: Option<List>,
    /// Its migrations.
    pub migrations: &'static [Migration],
    /// Points a field in its records that refer to a record at another one, or clears it.
    pub relink: RelinkRecords,
    /// Whether its links are cleared last, in the transaction that deletes the record.
    pub relinks_last: bool,
    /// Removes several records that nothing refers to, if deleting one of them does nothing else.
    pub remove_together: Option<RemoveTogether>,
    /// Returns the record with an id as the API shows it.
    pub show: fn(&mut Tx, &Ctx, &str) -> Result<Option<String>>,
    /// Checks the filters of an export; returns warnings.
    pub check_filters: fn(&mut Tx, &Ctx, &Call) -> Result<Vec<String>>,
    /// Returns a batch of records after an id, for exports.
    pub batch: ReadBatch,
    /// Checks a batch of an account's records after an id.
    pub inspect: Inspect,
    /// Whether it has records of its own: some resources only show those of others.
    pub stored: bool,
    /// Whether its rows expire: they are not counted, and may refer to deleted records.
    pub fleeting: bool,
    /// Whether the log shows the current records.
    pub logged: Logged,
    /// Whether a record is compared with its last line before it gets a new one.
    pub guarded: bool,
    /// Makes log, count and search texts match the guarded records after an id.
    pub accept: fn(&mut Tx, &Ctx, &str) -> Result<Accepted>,
    /// Returns what happened to a record.
    pub history: Option<Handler>,
}

impl Resource {
    /// Whether there is a table of such records.
    pub fn is_kept(&self) -> bool {
        self.stored
    }

    /// The fields that `returns` shows.
    pub fn shown(&self, returns: Returns) -> Vec<FieldInfo> {
        let view = match returns {
            Returns::Page | Returns::All | Returns::Either => LIST,
            Returns::PageOf(_) | Returns::CreatedOf(_) | Returns::CreatedParts(_) | Returns::StartedParts(_) => {
                return Vec::new();
            }
            Returns::Item(view) | Returns::Made(view) => view,
            Returns::Nothing | Returns::Content | Returns::Parts(_) | Returns::ListOfParts(_) => return Vec::new(),
            Returns::Found(..) | Returns::Report(..) => return Vec::new(),
            Returns::Feed(..) | Returns::PageOfEvents(..) | Returns::Stream(_) => return Vec::new(),
        };
        self.fields.iter().filter(|field| field.rules.views.includes(view)).copied().collect()
    }
}

/// Checks a batch of an account's records after an id.
pub type Inspect = Box<dyn Fn(&mut Tx, i64, &str, Option<&Lines>) -> Result<Inspected> + Send + Sync>;
