//! The registry: one line a resource. Routes, migrations, the OpenAPI document and the tests that
//! walk over everything read it.

pub mod batch;
pub mod change;
pub mod client;
pub mod client_link;
pub mod corporate_identity;
pub mod custom_field;
pub mod deal;
pub mod deal_source;
pub mod document;
pub mod email_domain;
pub mod file;
pub mod flow;
pub mod hour;
pub mod mandate;
pub mod note;
pub mod payment;
pub mod payment_term;
pub mod phase;
pub mod pipeline;
pub mod product;
pub mod project;
pub mod run;
pub mod settings;
pub mod subscription;
pub mod supplier;
pub mod task;
pub mod tax_rate;
pub mod ticket;
pub mod ticket_channel;
pub mod ticket_message;
pub mod ticket_status;
pub mod verification;
pub mod webhook_delivery;
pub mod webhook_endpoint;

use std::sync::LazyLock;

use store::{Migration, Tx};

use crate::call::Call;
use crate::context::Ctx;
use crate::error::Result;
use crate::list::{self, Form, Statements};
use crate::record::{CREATED, Checks, DETAIL, FieldInfo, LIST, Record, Shape, UPDATED, Views};
use crate::records::{self, Work};

/// Every resource.
pub static ALL: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    vec![
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
        product::resource(),
        task::resource(),
        note::resource(),
        document::invoices(),
        document::quotes(),
        document::workorders(),
        payment::resource(),
        subscription::resource(),
        verification::resource(),
        mandate::resource(),
        batch::resource(),
        file::resource(),
        tax_rate::resource(),
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
        crate::automation::trigger::by_automation(),
        crate::automation::trigger::by_webhook(),
        crate::automation::secret::resource(),
        crate::test_clock::resource(),
    ]
});

/// What a new account starts with.
pub fn defaults(tx: &mut Tx, ctx: &Ctx, name: &str) -> Result<()> {
    settings::defaults(tx, ctx)?;
    tax_rate::defaults(tx, ctx)?;
    payment_term::defaults(tx, ctx)?;
    corporate_identity::defaults(tx, ctx, name)?;
    pipeline::defaults(tx, ctx)?;
    deal_source::defaults(tx, ctx)?;
    ticket_status::defaults(tx, ctx)?;
    ticket_channel::defaults(tx, ctx)?;
    crate::automation::library::defaults(tx, ctx)
}

/// Every migration, in order.
pub fn migrations() -> Vec<Migration> {
    let base = [
        crate::accounts::MIGRATION,
        crate::search::MIGRATION,
        crate::log::MIGRATION,
        crate::idempotency::MIGRATION,
        crate::jobs::MIGRATION,
        crate::counters::MIGRATION,
        crate::site::MIGRATION,
        crate::marks::MIGRATION,
        crate::outbox::MIGRATION,
        document::pdf::MIGRATION,
        crate::timers::MIGRATION,
        document::DATES,
        crate::automation::MIGRATION,
    ];
    let resources = ALL.iter().flat_map(|resource| resource.migrations.iter().copied());
    let mut all: Vec<Migration> = base.into_iter().chain(resources).collect();
    all.sort_by_key(|migration| migration.number);
    all
}

/// What one record of `table` is called.
pub fn name_of(table: &str) -> &'static str {
    ALL.iter().find(|resource| resource.shape.table == table).map_or("record", |resource| resource.shape.name)
}

/// The address of a record.
pub fn location<R: Record>(record: &R) -> String {
    let path = ALL.iter().find(|resource| resource.shape.table == R::shape().table).map(|resource| &resource.path);
    let path = path.cloned().unwrap_or_default();
    let parent = R::parent().map(|parent| match (parent.to_db)(record) {
        store::Value::Text(id) => id.into_owned(),
        _ => String::new(),
    });
    format!("{}/{}", path.replace("{id}", &parent.unwrap_or_default()), record.base().id)
}

/// Whether a resource keeps its records in `table`.
pub fn has_table(table: &str) -> bool {
    ALL.iter().any(|resource| resource.shape.table == table)
}

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

/// What a route takes in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
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

/// A member of an answer that is no record: its name, its JSON type and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part(pub &'static str, pub &'static str, pub &'static str);

/// What a route answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
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
    /// These alone.
    Parts(&'static [Part]),
    /// A list of these.
    ManyParts(&'static [Part]),
    /// What comes behind a number: of these, by these parameters.
    Feed(&'static [Part], &'static [Part]),
    /// Events as they happen, by these parameters.
    Stream(&'static [Part]),
    /// A content that is no JSON.
    Content,
    /// No body.
    Nothing,
}

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
    /// What it takes.
    pub takes: Takes,
    /// The fields that it takes.
    pub fields: Vec<FieldInfo>,
    /// What it gives.
    pub gives: Gives,
    /// A query parameter that needs a scope of its own.
    pub also_needs: Option<(&'static str, &'static str)>,
    /// Whether it has the strict limit of the trigger route, across all nodes.
    pub scarce: bool,
    /// Whether a GET changes something all the same.
    pub writes: bool,
    /// Parses the request outside the transaction, and leaves the rest to do inside.
    pub handler: fn(Call) -> Result<Work>,
}

impl Route {
    /// Whether it gives a list of records.
    pub fn lists(&self) -> bool {
        matches!(self.gives, Gives::Page | Gives::PageOf(_) | Gives::All | Gives::Either | Gives::Feed(..))
    }

    /// Whether it only reads.
    pub fn reads(&self) -> bool {
        self.method == Method::Get && !self.writes
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
    pub unlink: fn(&mut Tx, &Ctx, &str, &str) -> Result<()>,
    /// The record with an id as the API shows it.
    pub show: fn(&mut Tx, &Ctx, &str) -> Result<Option<String>>,
}

impl Resource {
    /// A resource of `R` without routes.
    pub fn of<R: Record>(title: &'static str, area: &'static str, migrations: &'static [Migration]) -> Resource {
        Resource {
            area,
            write_area: area,
            title,
            shape: R::shape(),
            path: format!("/v1/{}", R::shape().table.replace('_', "-")),
            fields: R::infos(),
            routes: Vec::new(),
            list: None,
            migrations,
            unlink: records::unlink::<R>,
            show: records::shown::<R>,
        }
    }

    /// It lives at another path than its table says.
    pub fn at(mut self, path: &str) -> Resource {
        self.path = path.to_string();
        self
    }

    /// It is a setting: changes need the scope `settings.write`.
    pub fn setting(mut self) -> Resource {
        self.write_area = "settings";
        self
    }

    /// `GET /v1/…`
    pub fn list<R: Record>(mut self) -> Resource {
        self.list = Some(List::of::<R>());
        let summary = format!("List {}", self.plural());
        self.route(Method::Get, "", summary, Takes::Nothing, Gives::Page, list::list::<R>)
    }

    /// `GET /v1/…` without pages, unless they are asked for.
    pub fn list_or_all<R: Record>(mut self) -> Resource {
        self.list = Some(List::of::<R>());
        let summary = format!("List {}", self.plural());
        self.route(Method::Get, "", summary, Takes::Nothing, Gives::Either, list::either::<R>)
    }

    /// `GET /v1/…` of a short list, without pages.
    pub fn all<R: Record>(self) -> Resource {
        let summary = format!("List {}", self.plural());
        self.route(Method::Get, "", summary, Takes::Nothing, Gives::All, list::all::<R>)
    }

    /// The same, with a handler of its own.
    pub fn all_with(self, handler: fn(Call) -> Result<Work>) -> Resource {
        let summary = format!("List {}", self.plural());
        self.route(Method::Get, "", summary, Takes::Nothing, Gives::All, handler)
    }

    /// `POST /v1/…`
    pub fn create<R: Checks>(self) -> Resource {
        let summary = format!("Create {}", self.one());
        self.route(Method::Post, "", summary, Takes::Create, Gives::Item(CREATED), records::create::<R>)
    }

    /// The same, with a handler of its own.
    pub fn create_with(self, handler: fn(Call) -> Result<Work>) -> Resource {
        let summary = format!("Create {}", self.one());
        self.route(Method::Post, "", summary, Takes::Create, Gives::Item(CREATED), handler)
    }

    /// `POST /v1/…` with the fields of `B`.
    pub fn create_from<B: Record>(self, handler: fn(Call) -> Result<Work>) -> Resource {
        self.create_with(handler).with_fields(B::infos())
    }

    /// `POST /v1/…/…` that makes a record in another way.
    pub fn create_at(self, path: &str, summary: &str, handler: fn(Call) -> Result<Work>) -> Resource {
        self.route(Method::Post, path, summary.to_string(), Takes::Create, Gives::Item(CREATED), handler)
    }

    /// `POST /v1/…` of a file.
    pub fn upload(self, handler: fn(Call) -> Result<Work>) -> Resource {
        let summary = format!("Upload {}", self.one());
        self.route(Method::Post, "", summary, Takes::File, Gives::Item(CREATED), handler)
    }

    /// `GET /v1/…/{id}/…` of something that is no JSON; with a key, or by a signed address.
    pub fn content(self, path: &str, summary: &str, handler: fn(Call) -> Result<Work>) -> Resource {
        let path = format!("/{path}");
        self.own(Method::Get, &path, summary.to_string(), Takes::Nothing, Gives::Content, handler)
    }

    /// `GET /v1/…/{id}`
    pub fn get<R: Record>(self) -> Resource {
        let summary = format!("Retrieve {}", self.one());
        self.own(Method::Get, "", summary, Takes::Nothing, Gives::Item(DETAIL), records::get::<R>)
    }

    /// `PATCH /v1/…/{id}`
    pub fn patch<R: Checks>(self) -> Resource {
        let summary = format!("Change {}", self.one());
        self.own(Method::Patch, "", summary, Takes::Patch, Gives::Item(UPDATED), records::patch::<R>)
    }

    /// `DELETE /v1/…/{id}`, without a body in the answer.
    pub fn delete<R: Record>(self) -> Resource {
        let summary = format!("Delete {}", self.one());
        self.own(Method::Delete, "", summary, Takes::Nothing, Gives::Nothing, records::delete::<R>)
    }

    /// The same, with a handler of its own.
    pub fn delete_with(self, handler: fn(Call) -> Result<Work>) -> Resource {
        let summary = format!("Delete {}", self.one());
        self.own(Method::Delete, "", summary, Takes::Nothing, Gives::Nothing, handler)
    }

    /// `PATCH /v1/…/{id}` with a handler of its own.
    pub fn patch_with<R: Checks>(self, handler: fn(Call) -> Result<Work>) -> Resource {
        let summary = format!("Change {}", self.one());
        self.own(Method::Patch, "", summary, Takes::Patch, Gives::Item(UPDATED), handler)
    }

    /// `DELETE /v1/…/{id}`, which shows what is gone, with a handler of its own.
    pub fn delete_shown_with(self, handler: fn(Call) -> Result<Work>) -> Resource {
        let summary = format!("Delete {}", self.one());
        self.own(Method::Delete, "", summary, Takes::Nothing, Gives::Item(DETAIL), handler)
    }

    /// `GET /v1/…/{id}/…` of something that belongs to a record and is none itself.
    pub fn part(
        self,
        path: &str,
        summary: &str,
        parts: &'static [Part],
        handler: fn(Call) -> Result<Work>,
    ) -> Resource {
        let path = format!("/{path}");
        self.own(Method::Get, &path, summary.to_string(), Takes::Nothing, Gives::Parts(parts), handler)
    }

    /// The same, of several.
    pub fn parts(
        self,
        path: &str,
        summary: &str,
        parts: &'static [Part],
        handler: fn(Call) -> Result<Work>,
    ) -> Resource {
        let path = format!("/{path}");
        self.own(Method::Get, &path, summary.to_string(), Takes::Nothing, Gives::ManyParts(parts), handler)
    }

    /// `POST /v1/…/{id}/…` with the fields of `B`, which answers with something that is no record.
    pub fn action_parts<B: Record>(
        self,
        path: &str,
        summary: &str,
        parts: &'static [Part],
        handler: fn(Call) -> Result<Work>,
    ) -> Resource {
        let path = format!("/{path}");
        let resource = self.own(Method::Post, &path, summary.to_string(), Takes::Body, Gives::Parts(parts), handler);
        resource.with_fields(B::infos())
    }

    /// `POST /v1/…/{id}/…` without a body, which answers with something that is no record.
    pub fn act_parts(
        self,
        path: &str,
        summary: &str,
        parts: &'static [Part],
        handler: fn(Call) -> Result<Work>,
    ) -> Resource {
        let path = format!("/{path}");
        self.own(Method::Post, &path, summary.to_string(), Takes::Nothing, Gives::Parts(parts), handler)
    }

    /// `PUT /v1/…/{id}` with the fields of `B`, all of them.
    pub fn replace_from<B: Record>(self, handler: fn(Call) -> Result<Work>) -> Resource {
        let summary = format!("Replace {}", self.one());
        let resource = self.own(Method::Put, "", summary, Takes::Body, Gives::Item(DETAIL), handler);
        resource.with_fields(B::infos())
    }

    /// `POST /v1/…/{id}/…` with the fields of `B`, if any are sent, which makes a record of the same kind.
    pub fn action_made<B: Record>(self, path: &str, summary: &str, handler: fn(Call) -> Result<Work>) -> Resource {
        let path = format!("/{path}");
        let resource = self.own(Method::Post, &path, summary.to_string(), Takes::Maybe, Gives::Made(CREATED), handler);
        resource.with_fields(B::infos())
    }

    /// `POST /v1/…/{id}/…` without a body, which makes a record of another kind with the same fields.
    pub fn action_elsewhere(self, path: &str, summary: &str, handler: fn(Call) -> Result<Work>) -> Resource {
        let path = format!("/{path}");
        self.own(Method::Post, &path, summary.to_string(), Takes::Nothing, Gives::Made(CREATED), handler)
    }

    /// `PATCH /v1/…/{id}` with those fields of `B` that can be changed.
    pub fn patch_from<B: Record>(self, handler: fn(Call) -> Result<Work>) -> Resource {
        let summary = format!("Change {}", self.one());
        let fields = B::infos().into_iter().filter(|field| field.rules.patch).collect();
        self.own(Method::Patch, "", summary, Takes::Patch, Gives::Item(UPDATED), handler).with_fields(fields)
    }

    /// `GET /v1/…/{id}/…` of the records of another table that belong to it, in pages.
    pub fn pages_of(
        self,
        path: &str,
        summary: &str,
        table: &'static str,
        handler: fn(Call) -> Result<Work>,
    ) -> Resource {
        self.own(Method::Get, &format!("/{path}"), summary.to_string(), Takes::Nothing, Gives::PageOf(table), handler)
    }

    /// A route that stands beside the records: a method, a path and what it answers.
    pub fn beside(
        self,
        method: Method,
        path: &str,
        summary: &str,
        parts: &'static [Part],
        handler: fn(Call) -> Result<Work>,
    ) -> Resource {
        self.route(method, path, summary.to_string(), Takes::Nothing, Gives::Parts(parts), handler)
    }

    /// The last route takes the fields of `B`.
    pub fn taking<B: Record>(mut self, takes: Takes) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.takes = takes;
            route.fields = B::infos();
            route.fields.retain(|field| if takes == Takes::Patch { field.rules.patch } else { field.rules.create });
        }
        self
    }

    /// The last route changes something though it is a GET, when this parameter is sent; that needs
    /// a scope of its own.
    pub fn writes_with(mut self, parameter: &'static str, scope: &'static str) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.writes = true;
            route.also_needs = Some((parameter, scope));
        }
        self
    }

    /// The last route has the strict limit of the trigger route.
    pub fn scarce(mut self) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.scarce = true;
        }
        self
    }

    fn with_fields(mut self, fields: Vec<FieldInfo>) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.fields = fields;
        }
        self
    }

    /// `DELETE /v1/…/{id}`, which shows what is gone.
    pub fn delete_shown<R: Record>(self) -> Resource {
        let summary = format!("Delete {}", self.one());
        self.own(Method::Delete, "", summary, Takes::Nothing, Gives::Item(DETAIL), records::delete_shown::<R>)
    }

    /// `POST /v1/…/{id}/…` without a body, which answers as `view` shows the record.
    pub fn action(self, path: &str, summary: &str, view: Views, handler: fn(Call) -> Result<Work>) -> Resource {
        self.own(Method::Post, &format!("/{path}"), summary.to_string(), Takes::Nothing, Gives::Item(view), handler)
    }

    /// The same with a body of its own, the fields of `B`.
    pub fn action_with<B: Record>(
        self,
        path: &str,
        summary: &str,
        view: Views,
        handler: fn(Call) -> Result<Work>,
    ) -> Resource {
        let path = format!("/{path}");
        let resource = self.own(Method::Post, &path, summary.to_string(), Takes::Body, Gives::Item(view), handler);
        resource.with_fields(B::infos())
    }

    /// Create, retrieve and change, beside a list that the contract only reads.
    pub fn managed<R: Checks>(self) -> Resource {
        self.create::<R>().extension().get::<R>().extension().patch::<R>().extension()
    }

    /// The last route answers with something else.
    pub fn gives(mut self, gives: Gives) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.gives = gives;
        }
        self
    }

    /// Marks the last route as an addition to the contract.
    pub fn extension(mut self) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.extension = true;
        }
        self
    }

    /// Whether there is a table of such records.
    pub fn is_kept(&self) -> bool {
        !self.migrations.is_empty()
    }

    /// The fields that `gives` shows.
    pub fn shown(&self, gives: Gives) -> Vec<FieldInfo> {
        let view = match gives {
            Gives::Page | Gives::All | Gives::Either => LIST,
            Gives::PageOf(_) => return Vec::new(),
            Gives::Item(view) | Gives::Made(view) => view,
            Gives::Nothing | Gives::Content | Gives::Parts(_) | Gives::ManyParts(_) => return Vec::new(),
            Gives::Feed(..) | Gives::Stream(_) => return Vec::new(),
        };
        self.fields.iter().filter(|field| field.rules.views.includes(view)).copied().collect()
    }

    fn plural(&self) -> String {
        self.shape.table.replace('_', " ")
    }

    fn one(&self) -> String {
        let name = self.shape.name.replace('_', " ");
        let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {name}")
    }

    /// A route of one record: `{id}`, or a name of its own behind the `{id}` of the parent.
    fn own(
        self,
        method: Method,
        path: &str,
        summary: String,
        takes: Takes,
        gives: Gives,
        handler: fn(Call) -> Result<Work>,
    ) -> Resource {
        let id = if self.shape.parent.is_empty() { "id".to_string() } else { format!("{}_id", self.shape.name) };
        self.route(method, &format!("/{{{id}}}{path}"), summary, takes, gives, handler)
    }

    fn route(
        mut self,
        method: Method,
        path: &str,
        summary: String,
        takes: Takes,
        gives: Gives,
        handler: fn(Call) -> Result<Work>,
    ) -> Resource {
        let right = if method == Method::Get { "read" } else { "write" };
        let takes_field = |field: &&FieldInfo| match takes {
            Takes::Nothing | Takes::Body | Takes::Maybe | Takes::File => false,
            Takes::Create => field.rules.create,
            Takes::Patch => field.rules.patch,
        };
        self.routes.push(Route {
            method,
            path: format!("{}{path}", self.path),
            // Whoever has a key may read the settings.
            scope: match (self.area, method) {
                ("settings", Method::Get) => String::new(),
                (area, Method::Get) => format!("{area}.{right}"),
                _ => format!("{}.{right}", self.write_area),
            },
            summary,
            extension: false,
            also_needs: None,
            scarce: false,
            writes: false,
            takes,
            fields: self.fields.iter().filter(takes_field).copied().collect(),
            gives,
            handler,
        });
        self
    }
}
