//! The builder of resources: each method adds one route, or says something about the resource or its last route.

use store::{Migration, Tx};

use super::{Handler, List, Method, Part, RequestBody, Resource, Returns, Route};
use crate::error::Result;
use crate::inspect::{Inspected, inspect};
use crate::record::{CREATED, DETAIL, FieldInfo, Fields, LIST, Model, Record, Shape, UPDATED, Views};
use crate::tables::Logged;
use crate::{list, records};

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
            inspect: Box::new(|tx, account, after, lines| {
                inspect::<R>(tx, account, after, lines, |_, _, _| Ok(Vec::new()))
            }),
            fleeting: false,
            logged: Logged::Except(&[]),
        }
    }

    /// Routes that are about no records: what they are called in the documents, and the fields described there.
    pub fn without_records(
        shape: &'static Shape,
        title: &'static str,
        area: &'static str,
        fields: Vec<FieldInfo>,
    ) -> Resource {
        Resource {
            area,
            write_area: area,
            title,
            shape,
            path: format!("/v1/{}", shape.table.replace('_', "-")),
            fields,
            routes: Vec::new(),
            list: None,
            migrations: &[],
            unlink: |_, _, _, _, _| Ok(true),
            show: |_, _, _| Ok(None),
            inspect: Box::new(|_, _, _, _| Ok(Inspected::default())),
            fleeting: false,
            logged: Logged::No,
        }
    }

    /// What `kantoor verify` checks of a record beside what it checks of every one: sentences about what is wrong.
    pub fn inspected<R: Record>(mut self, own: fn(&mut Tx, i64, &R) -> Result<Vec<String>>) -> Resource {
        self.inspect = Box::new(move |tx, account, after, lines| inspect::<R>(tx, account, after, lines, own));
        self
    }

    /// Its rows go with their age: they are not counted, and may name what is gone.
    pub fn fleeting(mut self) -> Resource {
        self.fleeting = true;
        self
    }

    /// Its records change without entries in the log.
    pub fn unlogged(mut self) -> Resource {
        self.logged = Logged::No;
        self
    }

    /// These fields change without an entry in the log.
    pub fn changes_silently(mut self, fields: &'static [&'static str]) -> Resource {
        self.logged = Logged::Except(fields);
        self
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
        self.route(Method::Get, "", summary, RequestBody::Nothing, Returns::Page, list::list::<R>)
    }

    /// `GET /v1/…` without pages, unless they are asked for.
    pub fn list_or_all<R: Record>(mut self) -> Resource {
        self.list = Some(List::of::<R>());
        let summary = format!("List {}", self.plural());
        self.route(Method::Get, "", summary, RequestBody::Nothing, Returns::Either, list::either::<R>)
    }

    /// `GET /v1/…` of a short list, without pages.
    pub fn all<R: Record>(self) -> Resource {
        let summary = format!("List {}", self.plural());
        self.route(Method::Get, "", summary, RequestBody::Nothing, Returns::All, list::all::<R>)
    }

    /// `GET /v1/…` of a short list, with a handler of its own.
    pub fn all_with(self, handler: Handler) -> Resource {
        let summary = format!("List {}", self.plural());
        self.route(Method::Get, "", summary, RequestBody::Nothing, Returns::All, handler)
    }

    /// `POST /v1/…`
    pub fn create<R: Model>(self) -> Resource {
        let summary = format!("Create {}", self.one());
        self.route(Method::Post, "", summary, RequestBody::Create, Returns::Item(CREATED), records::create::<R>)
    }

    /// `POST /v1/…` with a handler of its own.
    pub fn create_with(self, handler: Handler) -> Resource {
        let summary = format!("Create {}", self.one());
        self.route(Method::Post, "", summary, RequestBody::Create, Returns::Item(CREATED), handler)
    }

    /// `POST /v1/…` with the fields of `B`.
    pub fn create_from<B: Fields>(self, handler: Handler) -> Resource {
        self.create_with(handler).with_fields(B::infos())
    }

    /// `POST /v1/…/…` that makes a record in another way.
    pub fn create_at(self, path: &str, summary: &str, handler: Handler) -> Resource {
        self.route(Method::Post, path, summary.to_string(), RequestBody::Create, Returns::Item(CREATED), handler)
    }

    /// `POST /v1/…` of a file.
    pub fn upload(self, handler: Handler) -> Resource {
        let summary = format!("Upload {}", self.one());
        self.route(Method::Post, "", summary, RequestBody::File, Returns::Item(CREATED), handler)
    }

    /// `GET /v1/…/{id}/…` of something that is no JSON; with a key, or by a signed address.
    pub fn content(self, path: &str, summary: &str, handler: Handler) -> Resource {
        let path = format!("/{path}");
        self.own(Method::Get, &path, summary.to_string(), RequestBody::Nothing, Returns::Content, handler)
    }

    /// `GET /v1/…/{id}`
    pub fn get<R: Record>(self) -> Resource {
        let summary = format!("Retrieve {}", self.one());
        self.own(Method::Get, "", summary, RequestBody::Nothing, Returns::Item(DETAIL), records::get::<R>)
    }

    /// `GET /v1/…/{id}` with a handler of its own.
    pub fn get_with(self, handler: Handler) -> Resource {
        let summary = format!("Retrieve {}", self.one());
        self.own(Method::Get, "", summary, RequestBody::Nothing, Returns::Item(DETAIL), handler)
    }

    /// `PATCH /v1/…/{id}`
    pub fn patch<R: Model>(self) -> Resource {
        let summary = format!("Change {}", self.one());
        self.own(Method::Patch, "", summary, RequestBody::Patch, Returns::Item(UPDATED), records::patch::<R>)
    }

    /// `DELETE /v1/…/{id}`, without a body in the answer.
    pub fn delete<R: Record>(self) -> Resource {
        let summary = format!("Delete {}", self.one());
        self.own(Method::Delete, "", summary, RequestBody::Nothing, Returns::Nothing, records::delete::<R>)
    }

    /// `DELETE /v1/…/{id}` with a handler of its own, without a body in the answer.
    pub fn delete_with(self, handler: Handler) -> Resource {
        let summary = format!("Delete {}", self.one());
        self.own(Method::Delete, "", summary, RequestBody::Nothing, Returns::Nothing, handler)
    }

    /// `PATCH /v1/…/{id}` with a handler of its own.
    pub fn patch_with<R: Model>(self, handler: Handler) -> Resource {
        let summary = format!("Change {}", self.one());
        self.own(Method::Patch, "", summary, RequestBody::Patch, Returns::Item(UPDATED), handler)
    }

    /// `DELETE /v1/…/{id}`, which shows what is gone, with a handler of its own.
    pub fn delete_shown_with(self, handler: Handler) -> Resource {
        let summary = format!("Delete {}", self.one());
        self.own(Method::Delete, "", summary, RequestBody::Nothing, Returns::Item(DETAIL), handler)
    }

    /// `GET /v1/…/{id}/…` of something that belongs to a record and is none itself.
    pub fn part(self, path: &str, summary: &str, parts: &'static [Part], handler: Handler) -> Resource {
        self.own(
            Method::Get,
            &format!("/{path}"),
            summary.to_string(),
            RequestBody::Nothing,
            Returns::Parts(parts),
            handler,
        )
    }

    /// `GET /v1/…/{id}/…` of a list of things that belong to a record and are none themselves.
    pub fn parts(self, path: &str, summary: &str, parts: &'static [Part], handler: Handler) -> Resource {
        self.part(path, summary, parts, handler).returns(Returns::ListOfParts(parts))
    }

    /// `POST /v1/…/{id}/…` without a body, which answers with something that is no record.
    pub fn act_parts(self, path: &str, summary: &str, parts: &'static [Part], handler: Handler) -> Resource {
        self.own(
            Method::Post,
            &format!("/{path}"),
            summary.to_string(),
            RequestBody::Nothing,
            Returns::Parts(parts),
            handler,
        )
    }

    /// `POST /v1/…/{id}/…` with the fields of `B`, which answers with something that is no record.
    pub fn action_parts<B: Fields>(
        self,
        path: &str,
        summary: &str,
        parts: &'static [Part],
        handler: Handler,
    ) -> Resource {
        self.act_parts(path, summary, parts, handler).taking::<B>(RequestBody::Body)
    }

    /// `PUT /v1/…/{id}` with the fields of a new record.
    pub fn replace_with(self, handler: Handler) -> Resource {
        let summary = format!("Replace {}", self.one());
        let fields = self.fields.iter().filter(|field| field.rules.create).copied().collect();
        self.own(Method::Put, "", summary, RequestBody::Body, Returns::Item(DETAIL), handler).with_fields(fields)
    }

    /// `POST /v1/…/{id}/…` with the fields of `B`, if any are sent, which makes a record of the same kind.
    pub fn action_made<B: Fields>(self, path: &str, summary: &str, handler: Handler) -> Resource {
        let path = format!("/{path}");
        let resource =
            self.own(Method::Post, &path, summary.to_string(), RequestBody::Maybe, Returns::Made(CREATED), handler);
        resource.with_fields(B::infos())
    }

    /// `POST /v1/…/{id}/…` without a body, which makes a record of another kind with the same fields.
    pub fn action_elsewhere(self, path: &str, summary: &str, handler: Handler) -> Resource {
        let path = format!("/{path}");
        self.own(Method::Post, &path, summary.to_string(), RequestBody::Nothing, Returns::Made(CREATED), handler)
    }

    /// `PATCH /v1/…/{id}` with those fields of `B` that can be changed.
    pub fn patch_from<B: Fields>(self, handler: Handler) -> Resource {
        let summary = format!("Change {}", self.one());
        let fields = B::infos().into_iter().filter(|field| field.rules.patch).collect();
        self.own(Method::Patch, "", summary, RequestBody::Patch, Returns::Item(UPDATED), handler).with_fields(fields)
    }

    /// `GET /v1/…/{id}/…` of the records of another table that belong to it, in pages.
    pub fn pages_of(self, path: &str, summary: &str, table: &'static str, handler: Handler) -> Resource {
        self.own(
            Method::Get,
            &format!("/{path}"),
            summary.to_string(),
            RequestBody::Nothing,
            Returns::PageOf(table),
            handler,
        )
    }

    /// A route that stands beside the records: a method, a path and what it answers.
    pub fn custom_route(
        self,
        method: Method,
        path: &str,
        summary: &str,
        parts: &'static [Part],
        handler: Handler,
    ) -> Resource {
        self.route(method, path, summary.to_string(), RequestBody::Nothing, Returns::Parts(parts), handler)
    }

    /// The last route takes the fields of `B`.
    pub fn taking<B: Fields>(mut self, takes: RequestBody) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.takes = takes;
            route.fields = B::infos();
            route
                .fields
                .retain(|field| if takes == RequestBody::Patch { field.rules.patch } else { field.rules.create });
        }
        self
    }

    /// The last route changes something though it is a GET, when this parameter is sent; that needs
    /// a scope of its own.
    pub fn acts_with(mut self, parameter: &'static str, scope: &'static str) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.acts_with = Some((parameter, scope));
        }
        self
    }

    /// The last route needs this scope beside that of its area.
    pub fn also_needs(mut self, scope: &'static str) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.also_needs = Some(scope);
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

    /// The `meta` of the last route's answers is always an empty object.
    pub fn without_meta(mut self) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.has_meta = false;
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
        self.own(Method::Delete, "", summary, RequestBody::Nothing, Returns::Item(DETAIL), records::delete_shown::<R>)
    }

    /// `POST /v1/…/{id}/…` without a body, which answers as `view` shows the record.
    pub fn action(self, path: &str, summary: &str, view: Views, handler: Handler) -> Resource {
        self.own(
            Method::Post,
            &format!("/{path}"),
            summary.to_string(),
            RequestBody::Nothing,
            Returns::Item(view),
            handler,
        )
    }

    /// `POST /v1/…/{id}/…` with the fields of `B`, which answers with the record.
    pub fn action_with<B: Fields>(self, path: &str, summary: &str, view: Views, handler: Handler) -> Resource {
        let path = format!("/{path}");
        let resource =
            self.own(Method::Post, &path, summary.to_string(), RequestBody::Body, Returns::Item(view), handler);
        resource.with_fields(B::infos())
    }

    /// Create, retrieve and change, beside a list that the contract only reads.
    pub fn managed<R: Model>(self) -> Resource {
        self.create::<R>().extension().get::<R>().extension().patch::<R>().extension()
    }

    /// The last route answers with something else.
    pub fn returns(mut self, returns: Returns) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            route.returns = returns;
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

    fn plural(&self) -> String {
        self.shape.table.replace('_', " ")
    }

    fn one(&self) -> String {
        let name = self.shape.name.replace('_', " ");
        let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) || name == "hour" { "an" } else { "a" };
        format!("{article} {name}")
    }

    /// A route of one record: `{id}`, or a name of its own behind the `{id}` of the parent.
    fn own(
        self,
        method: Method,
        path: &str,
        summary: String,
        takes: RequestBody,
        returns: Returns,
        handler: Handler,
    ) -> Resource {
        let id = if self.shape.parent.is_empty() { "id".to_string() } else { format!("{}_id", self.shape.name) };
        self.route(method, &format!("/{{{id}}}{path}"), summary, takes, returns, handler)
    }

    fn route(
        mut self,
        method: Method,
        path: &str,
        summary: String,
        takes: RequestBody,
        returns: Returns,
        handler: Handler,
    ) -> Resource {
        let right = if method == Method::Get { "read" } else { "write" };
        let takes_field = |field: &&FieldInfo| match takes {
            RequestBody::Nothing | RequestBody::Body | RequestBody::Maybe | RequestBody::File => false,
            RequestBody::Create => field.rules.create,
            RequestBody::Patch => field.rules.patch,
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
            acts_with: None,
            also_needs: None,
            scarce: false,
            has_meta: true,
            takes,
            fields: self.fields.iter().filter(takes_field).copied().collect(),
            returns,
            handler,
        });
        self
    }
}
