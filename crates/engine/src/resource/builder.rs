//! The builder of resources. A verb is a route that most resources have; `route` adds any other, and the methods after it
//! say what is different about the last one.

use store::{Migration, Tx};

use super::{Handler, List, Method, Part, RequestBody, Resource, Returns, Route, Verb};
use crate::error::Result;
use crate::inspect::{Inspected, inspect};
use crate::list::batch::Batch;
use crate::record::{CREATED, DETAIL, FieldInfo, Fields, Model, Record, Shape, UPDATED};
use crate::tables::{Logged, RelinkRecords};
use crate::{history, list, records};

impl Resource {
    /// A resource of `R` without routes.
    pub fn of<R: Record>(title: &'static str, area: &'static str, migrations: &'static [Migration]) -> Resource {
        Resource {
            area,
            write_area: area,
            title,
            shape: R::shape(),
            path: format!("/v1/{}", R::shape().table.replace('_', "-")),
            fields: R::infos().to_vec(),
            routes: Vec::new(),
            list: None,
            migrations,
            relink: records::relink::<R>,
            relinks_last: false,
            remove_together: None,
            show: records::shown::<R>,
            check_filters: list::batch::check::<R>,
            batch: list::batch::read::<R>,
            inspect: Box::new(|tx, account, after, lines| {
                inspect::<R>(tx, account, after, lines, |_, _, _| Ok(Vec::new()))
            }),
            stored: true,
            fleeting: false,
            logged: Logged::Except(&[]),
            guarded: false,
            accept: records::accept_some::<R>,
            history: Some(history::history::<R>),
        }
    }

    /// Declares routes without records, with their title and fields in the OpenAPI document.
    pub fn without_records(
        shape: &'static Shape,
        title: &'static str,
        area: &'static str,
        fields: &[FieldInfo],
    ) -> Resource {
        Resource {
            area,
            write_area: area,
            title,
            shape,
            path: format!("/v1/{}", shape.table.replace('_', "-")),
            fields: fields.to_vec(),
            routes: Vec::new(),
            list: None,
            migrations: &[],
            relink: |_, _, _, _| Ok(true),
            relinks_last: false,
            remove_together: None,
            show: |_, _, _| Ok(None),
            check_filters: |_, _, _| Ok(Vec::new()),
            batch: |_, _, _, _| Ok(Batch::default()),
            inspect: Box::new(|_, _, _, _| Ok(Inspected::default())),
            stored: false,
            fleeting: false,
            logged: Logged::No,
            guarded: false,
            accept: |_, _, _| Ok(records::Accepted::default()),
            history: None,
        }
    }

    /// Adds checks of `kantoor verify` for this type of record; they return a sentence for each problem.
    pub fn inspected<R: Record>(mut self, own: fn(&mut Tx, i64, &R) -> Result<Vec<String>>) -> Resource {
        self.inspect = Box::new(move |tx, account, after, lines| inspect::<R>(tx, account, after, lines, own));
        self
    }

    /// Declares that records expire: they are not counted, and may refer to deleted records.
    pub fn fleeting(mut self) -> Resource {
        self.fleeting = true;
        self
    }

    /// How its records relate to the log, unless every change of one has its line.
    pub fn logged(mut self, logged: Logged) -> Resource {
        self.logged = logged;
        self
    }

    /// Its records give access or say where money goes. Each is compared with its last line before it gets a new one, which would
    /// otherwise take over what somebody changed in the database.
    pub fn guarded(mut self) -> Resource {
        self.guarded = true;
        self
    }

    /// Its records change in their own way when a record that they refer to is deleted or merged.
    pub fn relinked(mut self, relink: RelinkRecords) -> Resource {
        self.relink = relink;
        self
    }

    /// The links of its records to a deleted record are cleared last: in the transaction that deletes it, if all of them fit.
    pub fn relinked_last(mut self) -> Resource {
        self.relinks_last = true;
        self
    }

    /// All its changes so far are also open to callers with this scope.
    pub fn or_with(mut self, scope: &'static str) -> Resource {
        let changes = self.routes.iter_mut().filter(|route| route.method != Method::Get);
        changes.for_each(|route| route.instead = Some(scope));
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

    /// `GET /v1/…` in pages.
    pub fn list<R: Record>(mut self) -> Resource {
        self.list = Some(List::of::<R>());
        self.verb(Verb::List, list::list::<R>)
    }

    /// `GET /v1/…` of the records of `R` under all parents, in pages.
    pub fn across<R: Record>(mut self) -> Resource {
        self.list = Some(List::across::<R>());
        self.verb(Verb::List, list::across::<R>)
    }

    /// `GET /v1/…` of a short list, without pages.
    pub fn all<R: Record>(self) -> Resource {
        self.verb(Verb::All, list::all::<R>)
    }

    /// `POST /v1/…`
    pub fn create<R: Model>(self) -> Resource {
        self.verb(Verb::Create, records::create::<R>)
    }

    /// `GET /v1/…/{id}`
    pub fn get<R: Record>(self) -> Resource {
        self.verb(Verb::Get, records::get::<R>)
    }

    /// `PATCH /v1/…/{id}`
    pub fn patch<R: Model>(self) -> Resource {
        self.verb(Verb::Patch, records::patch::<R>)
    }

    /// `DELETE /v1/…/{id}`, without a body in the response.
    pub fn delete<R: Record>(self) -> Resource {
        self.verb(Verb::Delete, records::delete::<R>).removed_together::<R>()
    }

    /// Deleting a record that nothing refers to does nothing else, so that many can be removed together.
    pub fn removed_together<R: Record>(mut self) -> Resource {
        self.remove_together = Some(records::remove_together::<R>);
        self
    }

    /// Create, retrieve and change, beside a list that the contract only reads.
    pub fn managed<R: Model>(self) -> Resource {
        self.create::<R>().extension().get::<R>().extension().patch::<R>().extension()
    }

    /// `GET /v1/…/{id}/history`, if every change of a record has its line in the log; `members` are those of an event.
    pub fn with_history(self, members: &'static [Part]) -> Resource {
        let Some(history) = self.history.filter(|_| matches!(self.logged, Logged::Except(_))) else { return self };
        let (path, summary) =
            (format!("{}/history", self.own_path()), format!("List the events of {}", self.singular()));
        // Any key may read the settings, but not who changed them.
        let scope = format!("{}.read", self.area);
        self.route(Method::Get, &path, &summary, history)
            .returns(Returns::PageOfEvents(members, history::QUERY))
            .with(|route| route.scope = scope)
            .extension()
    }

    /// Adds a standard route with a custom handler.
    pub fn verb(self, verb: Verb, handler: Handler) -> Resource {
        let (plural, one, own) = (self.plural(), self.singular(), self.own_path());
        let (method, path, summary, body, returns) = match verb {
            Verb::List => (Method::Get, "", format!("List {plural}"), RequestBody::Nothing, Returns::Page),
            Verb::All => (Method::Get, "", format!("List {plural}"), RequestBody::Nothing, Returns::All),
            Verb::Create => (Method::Post, "", format!("Create {one}"), RequestBody::Create, Returns::Item(CREATED)),
            Verb::Get => (Method::Get, &*own, format!("Retrieve {one}"), RequestBody::Nothing, Returns::Item(DETAIL)),
            Verb::Patch => (Method::Patch, &*own, format!("Change {one}"), RequestBody::Patch, Returns::Item(UPDATED)),
            Verb::Delete => (Method::Delete, &*own, format!("Delete {one}"), RequestBody::Nothing, Returns::Nothing),
        };
        let fields = self.fields.iter().filter(|field| body.accepts(field)).copied().collect();
        self.route(method, path, &summary, handler).returns(returns).with(|route| {
            route.body = body;
            route.fields = fields;
        })
    }

    /// Any other route, with its path behind that of the resource. It takes no body and responds with the record, unless
    /// [`body`](Resource::body) and [`returns`](Resource::returns) follow.
    pub fn route(mut self, method: Method, path: &str, summary: &str, handler: Handler) -> Resource {
        self.routes.push(Route {
            method,
            path: format!("{}{path}", self.path),
            // Any key may read the settings.
            scope: match (self.area, method) {
                ("settings", Method::Get) => String::new(),
                (area, Method::Get) => format!("{area}.read"),
                _ => format!("{}.write", self.write_area),
            },
            summary: summary.to_string(),
            extension: false,
            visits_many: false,
            query: &[],
            acts_with: None,
            also_needs: None,
            instead: None,
            scarce: false,
            has_meta: true,
            body: RequestBody::Nothing,
            fields: Vec::new(),
            returns: Returns::Item(DETAIL),
            handler,
        });
        self
    }

    /// The last route takes the fields of `B`.
    pub fn body<B: Fields>(self, body: RequestBody) -> Resource {
        self.with(|route| {
            route.body = body;
            route.fields = B::infos().iter().copied().filter(|field| body.accepts(field)).collect();
        })
    }

    /// The last route responds with this.
    pub fn returns(self, returns: Returns) -> Resource {
        self.with(|route| route.returns = returns)
    }

    /// Marks the last route as an addition to the contract.
    pub fn extension(self) -> Resource {
        self.with(|route| route.extension = true)
    }

    /// Sets what is special about the last route, such as a second scope.
    pub fn with(mut self, change: impl FnOnce(&mut Route)) -> Resource {
        if let Some(route) = self.routes.last_mut() {
            change(route);
        }
        self
    }

    fn plural(&self) -> String {
        self.shape.table.replace('_', " ")
    }

    fn singular(&self) -> String {
        let name = self.shape.name.replace('_', " ");
        let vowel = name.starts_with(['a', 'e', 'i', 'o', 'u']) && name != "user";
        let article = if vowel || name == "hour" { "an" } else { "a" };
        format!("{article} {name}")
    }

    /// Returns the path of one record: `/{id}`, or another name after the `{id}` of the parent.
    fn own_path(&self) -> String {
        if self.shape.parent.is_empty() { "/{id}".to_string() } else { format!("/{{{}_id}}", self.shape.name) }
    }
}

impl RequestBody {
    fn accepts(self, field: &FieldInfo) -> bool {
        match self {
            RequestBody::Nothing | RequestBody::File => false,
            RequestBody::Create | RequestBody::Body | RequestBody::Maybe => field.rules.create,
            RequestBody::Patch => field.rules.patch,
        }
    }
}
