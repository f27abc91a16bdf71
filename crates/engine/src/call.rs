//! A request as handlers see it, and the answer they return, independent of HTTP.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use store::Tx;

use crate::app::App;
use crate::contents::Upload;
use crate::context::{Actor, Ctx};
use crate::error::Result;
use crate::json::Json;
pub use crate::query::{Query, whole_number};
use crate::record::{Record, Views};
use crate::tables;

/// What a handler leaves to do in the transaction.
pub type Work = Box<dyn Fn(&mut Tx, &Ctx) -> Result<Answer> + Send + Sync>;

/// What was asked.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The parts of the path that vary, in order: `id`, then what the route has more.
    pub path: Vec<String>,
    /// The query parameters.
    pub query: Query,
    /// The body; `None` when there is none.
    pub body: Option<Json>,
    /// The file in the body, received and kept.
    pub upload: Option<Upload>,
    /// Sentences about parts of the body that were passed over.
    pub warnings: Vec<String>,
    /// Unknown fields become warnings.
    pub lenient: bool,
    /// The `Idempotency-Key`, or empty.
    pub claim: String,
}

impl Call {
    /// The first id in the path.
    pub fn id(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// The last id in the path: of the record that is meant, where the first is of its parent.
    pub fn last_id(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}

/// What kind of success it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Read or changed.
    Done,
    /// A record was made.
    Created,
    /// Nothing to show.
    Empty,
}

/// An answer: the JSON of `data`, the members of `meta`, and what goes into headers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What kind of success it is.
    pub outcome: Outcome,
    /// The JSON of `data`.
    pub data: Vec<u8>,
    /// The members of `meta`, each `"name":value`.
    pub meta: Vec<String>,
    /// Where the new record is.
    pub location: Option<String>,
    /// The version of the record in `data`.
    pub version: Option<i64>,
    /// Pages beside this one: relation and page number.
    pub pages: Vec<(&'static str, i64)>,
    /// A content to be sent instead of `data`.
    pub content: Option<Content>,
    /// Headers that only this answer has.
    pub headers: Vec<(&'static str, String)>,
    /// What is to be done outside before there is an answer.
    pub after: Option<After>,
    /// A counter and the value of its label, to be counted once the answer is kept.
    pub counts: Option<(&'static str, &'static str)>,
}

/// What an [`After`] does.
type Outside = dyn Fn(&App, &Actor) -> Result<Work> + Send + Sync;

/// Work outside the database in the middle of a request: it is done once the transaction is kept,
/// blocks as long as it takes, and leaves the rest to do in a transaction of its own. Whoever
/// needs it to happen whatever becomes of this process writes a job as well.
#[derive(Clone)]
pub struct After(pub Arc<Outside>);

impl fmt::Debug for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("After")
    }
}

/// A content that is sent instead of JSON.
#[derive(Clone, Debug)]
pub enum Content {
    /// It lies in the blob store.
    Kept {
        /// Its key there.
        key: String,
        /// What it is called when it is saved.
        name: String,
        /// What it is.
        content_type: String,
        /// Differs when the content does.
        etag: String,
    },
    /// It is made now.
    Made(Arc<dyn Make>),
    /// A text.
    Written {
        /// What it is called when it is saved.
        name: String,
        /// What it is.
        content_type: String,
        /// The text.
        text: String,
    },
}

/// A content that is made when somebody asks for it.
pub trait Make: fmt::Debug + Send + Sync {
    /// What it is called when it is saved.
    fn name(&self) -> &str;
    /// What it is.
    fn content_type(&self) -> &'static str;
    /// Makes it when it is the account's turn.
    fn make(&self, app: Arc<App>) -> BoxFuture<'static, Result<Bytes>>;
    /// Makes it at once, on the caller's thread.
    fn make_now(&self, app: &App) -> Result<Vec<u8>>;
}

impl Answer {
    /// `data` as it is.
    pub fn data(outcome: Outcome, data: Vec<u8>) -> Answer {
        Answer {
            outcome,
            data,
            meta: Vec::new(),
            location: None,
            version: None,
            pages: Vec::new(),
            content: None,
            headers: Vec::new(),
            after: None,
            counts: None,
        }
    }

    /// A record as `view` shows it.
    pub fn record<R: Record>(ctx: &Ctx, record: &R, view: Views) -> Answer {
        let mut data = Vec::with_capacity(512);
        record.write_json(view, ctx, &mut data);
        Answer { version: Some(record.base().version), ..Answer::data(Outcome::Done, data) }
    }

    /// A record that was just created, as `view` shows it, with its location.
    pub fn created<R: Record>(ctx: &Ctx, record: &R, view: Views) -> Answer {
        Answer {
            outcome: Outcome::Created,
            location: Some(tables::location(record)),
            ..Answer::record(ctx, record, view)
        }
    }

    /// A content instead of JSON.
    pub fn content(content: Content) -> Answer {
        Answer { content: Some(content), ..Answer::empty() }
    }

    /// None yet: `work` is done first.
    pub fn after(work: impl Fn(&App, &Actor) -> Result<Work> + Send + Sync + 'static) -> Answer {
        Answer { after: Some(After(Arc::new(work))), ..Answer::empty() }
    }

    /// JSON that is no record.
    pub fn json(data: &serde_json::Value) -> Answer {
        Answer::data(Outcome::Done, data.to_string().into_bytes())
    }

    /// No body.
    pub fn empty() -> Answer {
        Answer::data(Outcome::Empty, Vec::new())
    }

    /// Adds texts to a list in `meta`, such as `warnings`.
    pub fn with_texts(mut self, name: &str, texts: &[String]) -> Answer {
        if !texts.is_empty() {
            self.meta.push(format!("\"{name}\":{}", serde_json::json!(texts)));
        }
        self
    }
}
