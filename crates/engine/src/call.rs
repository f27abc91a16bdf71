//! A request as handlers receive it and the response that they return, independent of HTTP.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use store::Tx;

use crate::app::App;
use crate::contents::Upload;
use crate::context::{Actor, Ctx};
use crate::error::{FieldCode, FieldErrors, Result, violation};
use crate::json::Json;
pub use crate::query::{Query, whole_number};
use crate::record::{AnyRecord, Views, write_json};
use crate::tables::{self, Ahead};
use crate::text::did_you_mean;

/// The part of a handler that runs in the transaction.
pub type Work = Box<dyn Fn(&mut Tx, &Ctx) -> Result<Answer> + Send + Sync>;

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The variable parts of the path, in order: `id`, then further ones of the route.
    pub path: Vec<String>,
    /// The query parameters.
    pub query: Query,
    /// The body; `None` when there is none.
    pub body: Option<Json>,
    /// The file in the body, received and stored.
    pub upload: Option<Upload>,
    /// Warnings about ignored parts of the body.
    pub warnings: Vec<String>,
    /// Whether unknown fields are warnings instead of errors.
    pub lenient: bool,
    /// Whether unknown parameters are errors instead of being ignored.
    pub strict: bool,
    /// Whether the program makes the call as a part of something else, not a client: invalid fields are reported before the
    /// transaction, which may never begin.
    pub early: bool,
    /// The `Idempotency-Key`, or empty.
    pub claim: String,
    /// The records whose link the next slice changes, if they were looked up before its transaction.
    pub ahead: Option<Arc<Ahead>>,
}

impl Call {
    /// Adds an error for each parameter that is not known, with a guess, if the caller wants that.
    pub fn refuse_unknown(&self, unknown: &[String], known: &[&str], faults: &mut FieldErrors) {
        for name in unknown.iter().filter(|_| self.strict) {
            let hint = did_you_mean(name, known.iter().copied());
            let shown: String = name.chars().take(100).collect();
            faults.add(shown, violation(FieldCode::UnknownParameter, format!("is not a known parameter{hint}")));
        }
    }

    /// Returns the first id in the path.
    pub fn id(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// Returns the last id in the path: that of the record itself, where the first is that of its parent.
    pub fn last_id(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}

/// The kind of success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Read or changed.
    Done,
    /// A record was created.
    Created,
    /// Work was started that goes on after the response.
    Started,
    /// There is no content.
    Empty,
}

/// A response: the JSON of `data`, the members of `meta`, and the values of headers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The kind of success.
    pub outcome: Outcome,
    /// The JSON of `data`.
    pub data: Vec<u8>,
    /// The members of `meta`, each `"name":value`.
    pub meta: Vec<String>,
    /// The path of the new record.
    pub location: Option<String>,
    /// The version of the record in `data`.
    pub version: Option<i64>,
    /// Links to other pages: relation and page number.
    pub pages: Vec<(&'static str, i64)>,
    /// A content to send instead of `data`.
    pub content: Option<Content>,
    /// Additional headers of this response.
    pub headers: Vec<(&'static str, String)>,
    /// Work to do outside the transaction before responding.
    pub after: Option<After>,
    /// A counter and its label value, to increment after the commit.
    pub counts: Option<(&'static str, &'static str)>,
}

/// The function of an [`After`].
type Outside = dyn Fn(&App, &Actor) -> Result<Work> + Send + Sync;

/// Work outside the database in the middle of a request: it runs after the commit, may block, and returns the rest of
/// the work for another transaction. If it must happen even if this process dies, the transaction also enqueues a job.
#[derive(Clone)]
pub struct After(pub Arc<Outside>);

impl fmt::Debug for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("After")
    }
}

/// A content to send instead of JSON.
#[derive(Clone, Debug)]
pub enum Content {
    /// Stored in the blob store.
    Kept {
        /// Its key.
        key: String,
        /// Its file name.
        name: String,
        /// Its content type.
        content_type: String,
        /// Changes when the content does.
        etag: String,
    },
    /// Created on demand.
    Made(Arc<dyn Make>),
    /// Written while it is sent, in constant memory.
    Poured(Arc<dyn Pour>),
    /// A text.
    Written {
        /// Its file name.
        name: String,
        /// Its content type.
        content_type: String,
        /// The text.
        text: String,
    },
    /// An HTML page to look at, such as a preview of a mail. It may have styles and images of this server; nothing in it runs.
    Page(String),
}

/// A content that is created on demand.
pub trait Make: fmt::Debug + Send + Sync {
    /// Its file name.
    fn name(&self) -> &str;
    /// Its content type.
    fn content_type(&self) -> &'static str;
    /// Creates it when it is the account's turn.
    fn make(&self, app: Arc<App>) -> BoxFuture<'static, Result<Bytes>>;
    /// Creates it immediately, on the calling thread.
    fn make_now(&self, app: &App) -> Result<Vec<u8>>;
}

/// A content that is written while it is sent.
pub trait Pour: fmt::Debug + Send + Sync {
    /// Its file name.
    fn name(&self) -> &str;
    /// Its content type.
    fn content_type(&self) -> &'static str;
    /// Writes it, on a thread of its own. An error before the first byte becomes the response; a later one cuts it off.
    fn pour(&self, app: &App, out: &mut dyn Write) -> Result<()>;
}

impl Answer {
    /// A response with this `data`.
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

    /// A response with a record, as `view` shows it.
    pub fn record(ctx: &Ctx, record: &dyn AnyRecord, view: Views) -> Answer {
        let mut data = Vec::with_capacity(512);
        write_json(record, view, ctx, &mut data);
        Answer { version: Some(record.common().version), ..Answer::data(Outcome::Done, data) }
    }

    /// A response with a new record, as `view` shows it, and its location.
    pub fn created(ctx: &Ctx, record: &dyn AnyRecord, view: Views) -> Answer {
        Answer {
            outcome: Outcome::Created,
            location: Some(tables::location(record)),
            ..Answer::record(ctx, record, view)
        }
    }

    /// A response with a content instead of JSON.
    pub fn content(content: Content) -> Answer {
        Answer { content: Some(content), ..Answer::empty() }
    }

    /// A response that is determined after `work`.
    pub fn after(work: impl Fn(&App, &Actor) -> Result<Work> + Send + Sync + 'static) -> Answer {
        Answer { after: Some(After(Arc::new(work))), ..Answer::empty() }
    }

    /// A response with JSON that is not a record.
    pub fn json(data: &serde_json::Value) -> Answer {
        Answer::data(Outcome::Done, data.to_string().into_bytes())
    }

    /// A list with its length.
    pub fn list(items: Vec<serde_json::Value>) -> Answer {
        let meta = vec![format!("\"total\":{}", items.len())];
        Answer { meta, ..Answer::json(&serde_json::Value::Array(items)) }
    }

    /// A response without a body.
    pub fn empty() -> Answer {
        Answer::data(Outcome::Empty, Vec::new())
    }

    /// Adds strings to a list in `meta`, such as `warnings`.
    pub fn with_texts(mut self, name: &str, texts: &[String]) -> Answer {
        if !texts.is_empty() {
            self.meta.push(format!("\"{name}\":{}", serde_json::json!(texts)));
        }
        self
    }
}
