//! A resource: a record with its routes, and what the rest of the program may ask of it.

mod builder;

use store::{Migration, Tx};

use crate::call::{Call, Query};
use crate::context::Ctx;
use crate::error::Result;
use crate::inspect::Inspected;
use crate::inspect::lines::Lines;
use crate::list::{self, Form, Statements};
pub use crate::record::Part;
use crate::record::{FieldInfo, LIST, Record, Shape, Views};
use crate::records::Work;
use crate::slice::Slice;
use crate::tables::Logged;

/// What a route does, in the words of HTTP.
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
    /// As HTTP spells it.
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

/// What a route takes in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// Nothing.
    Nothing,
    /// The fields of a new record.
    Create,
    /// Some of the fields that can be changed.
    Patch,
    /// Fields of its own.
    Body,
    /// Fields of its own, or no body at all.
    Maybe,
    /// A file, as multipart/form-data.
    File,
}

/// What a route answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Records in pages.
    Page,
    /// Records of another table in pages.
    PageOf(&'static str),
    /// All records.
    All,
    /// All records, or a page for who asks for one.
    Either,
    /// The record, as a view shows it.
    Item(Views),
    /// A new record, as a view shows it.
    Made(Views),
    /// A new record of another table.
    CreatedOf(&'static str),
    /// These alone.
    Parts(&'static [Part]),
    /// These alone, of a new record.
    CreatedParts(&'static [Part]),
    /// A list of these.
    ListOfParts(&'static [Part]),
    /// What comes behind a number: of these, by these parameters.
    Feed(&'static [Part], &'static [Part]),
    /// Events as they happen, by these parameters.
    Stream(&'static [Part]),
    /// A content that is no JSON.
    Content,
    /// No body.
    Nothing,
}

/// Parses a request outside the transaction, and leaves the rest to do inside.
pub type Handler = fn(Call) -> Result<Work>;

/// A route.
pub struct Route {
    /// Its method.
    pub method: Method,
    /// Its path, with `{id}`.
    pub path: String,
    /// The scope a key needs.
    pub scope: String,
    /// A line for the documents.
    pub summary: String,
    /// Whether it is an addition to the contract.
    pub extension: bool,
    /// What it takes in its body.
    pub body: RequestBody,
    /// The fields that it takes.
    pub fields: Vec<FieldInfo>,
    /// What it returns.
    pub returns: Returns,
    /// A query parameter by which a GET changes something all the same, and the scope that this needs.
    pub acts_with: Option<(&'static str, &'static str)>,
    /// A scope that it needs beside its own.
    pub also_needs: Option<&'static str>,
    /// Whether it has the strict limit of the trigger route, across all nodes.
    pub scarce: bool,
    /// Whether `meta` of its answers has members, such as `warnings`.
    pub has_meta: bool,
    /// Parses the request outside the transaction, and leaves the rest to do inside.
    pub handler: Handler,
}

impl Route {
    /// Whether it returns a list of records.
    pub fn lists(&self) -> bool {
        matches!(self.returns, Returns::Page | Returns::PageOf(_) | Returns::All | Returns::Either | Returns::Feed(..))
    }

    /// Whether it only reads, whatever is asked.
    pub fn reads(&self) -> bool {
        self.method == Method::Get && self.acts_with.is_none()
    }

    /// Whether it only reads when this is asked.
    pub fn reads_for(&self, query: &Query) -> bool {
        self.method == Method::Get && self.acts_with.is_none_or(|(parameter, _)| query.get(parameter).is_none())
    }
}

/// The list of a resource, for documents and tests.
pub struct List {
    /// Whether `search` is taken.
    pub searches: bool,
    /// What it can be sorted by.
    pub sorts: Vec<&'static str>,
    /// The statements for a query.
    pub statements: fn(&Call, &mut Tx, &Ctx) -> Result<Statements>,
}

impl List {
    fn of<R: Record>() -> List {
        List {
            searches: R::is_searched(),
            sorts: list::sorts::<R>(),
            statements: |call, tx, ctx| list::Request::read::<R>(call, Form::Pages)?.statements::<R>(tx, ctx),
        }
    }
}

/// A resource: a record with its routes.
pub struct Resource {
    /// The name of its scopes.
    pub area: &'static str,
    /// The name of the scope for changes, where it is another.
    pub write_area: &'static str,
    /// Its heading in the documents.
    pub title: &'static str,
    /// What is said about the record.
    pub shape: &'static Shape,
    /// The path of its list.
    pub path: String,
    /// The fields of the record.
    pub fields: Vec<FieldInfo>,
    /// Its routes.
    pub routes: Vec<Route>,
    /// Its list, when it has one.
    pub list: Option<List>,
    /// Its migrations.
    pub migrations: &'static [Migration],
    /// Clears a field in the records of it that name a record which is gone.
    pub unlink: fn(&mut Tx, &Ctx, &str, &str, &Slice) -> Result<bool>,
    /// The record with an id as the API shows it.
    pub show: fn(&mut Tx, &Ctx, &str) -> Result<Option<String>>,
    /// Checks the records of an account behind an id, some at a time.
    pub inspect: Inspect,
    /// Its rows go with their age: they are not counted, and may name what is gone.
    pub fleeting: bool,
    /// Whether the log shows its records as they are.
    pub logged: Logged,
}

impl Resource {
    /// Whether there is a table of such records.
    pub fn is_kept(&self) -> bool {
        !self.migrations.is_empty()
    }

    /// The fields that `returns` shows.
    pub fn shown(&self, returns: Returns) -> Vec<FieldInfo> {
        let view = match returns {
            Returns::Page | Returns::All | Returns::Either => LIST,
            Returns::PageOf(_) | Returns::CreatedOf(_) | Returns::CreatedParts(_) => return Vec::new(),
            Returns::Item(view) | Returns::Made(view) => view,
            Returns::Nothing | Returns::Content | Returns::Parts(_) | Returns::ListOfParts(_) => return Vec::new(),
            Returns::Feed(..) | Returns::Stream(_) => return Vec::new(),
        };
        self.fields.iter().filter(|field| field.rules.views.includes(view)).copied().collect()
    }
}

/// Checks the records of an account behind an id, some at a time.
pub type Inspect = Box<dyn Fn(&mut Tx, i64, &str, Option<&Lines>) -> Result<Inspected> + Send + Sync>;
