//! A request as the verbs see it, and the answer they give: no HTTP here.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::context::{Caller, Ctx};
use crate::error::{Faults, FieldCode, Result, wrong};
use crate::json::Json;
use crate::record::{Record, Views};
use crate::records::Work;
use crate::resources;
use crate::resources::file::{File, Upload};

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

/// More parameters than any list has.
const MAX_PARAMETERS: usize = 100;

/// Query parameters, in the order sent.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands behind the `?`. A parameter that comes twice, or has a NUL, is a fault.
    pub fn parse(text: &str) -> Result<Query> {
        let mut faults = Faults::default();
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if pairs.len() >= MAX_PARAMETERS {
                faults.add("query", wrong(FieldCode::TooLong, format!("may have at most {MAX_PARAMETERS} parameters")));
                break;
            }
            if value.contains('\0') || name.contains('\0') {
                faults.add(name.clone(), wrong(FieldCode::InvalidCharacters, "contains the control character U+0000"));
            }
            if pairs.iter().any(|(other, _)| *other == name) {
                faults.add(name.clone(), wrong(FieldCode::GivenTwice, "is given more than once"));
            }
            pairs.push((name.into_owned(), value.into_owned()));
        }
        faults.into_result()?;
        Ok(Query(pairs))
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(has, _)| has == name).map(|(_, value)| value.as_str())
    }

    /// The query without a parameter.
    pub fn without(mut self, name: &str) -> Query {
        self.0.retain(|(has, _)| has != name);
        self
    }

    /// The names of all parameters.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The query again with another `page`.
    pub fn with_page(&self, page: i64) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(self.0.iter().filter(|(name, _)| name != "page"));
        text.append_pair("page", &page.to_string());
        text.finish()
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
    /// How a run ended by it, to be counted once that is kept.
    pub ended_run: Option<&'static str>,
}

/// What an [`After`] does.
type Outside = dyn Fn(&App, &Caller) -> Result<Work> + Send + Sync;

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
    /// A PDF that is to be printed.
    Printed(Box<Print>),
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

impl Content {
    /// The content of a file.
    pub fn kept(file: &File) -> Content {
        Content::Kept {
            key: file.content.clone(),
            name: file.name.clone(),
            content_type: file.content_type.clone(),
            etag: file.sha256.clone(),
        }
    }
}

/// All that is needed to print a document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Print {
    /// Whose it is.
    pub account: i64,
    /// Its id.
    pub document: String,
    /// Which revision; 0 for a draft, which is not kept.
    pub revision: i64,
    /// What the file is called.
    pub name: String,
    /// The time in the file, in seconds.
    pub created: i64,
    /// The key of the logo's content, or empty.
    pub logo: String,
    /// The text of the code to pay with, or empty.
    pub qr: String,
    /// What the template takes.
    pub data: serde_json::Value,
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
            ended_run: None,
        }
    }

    /// A record as `view` shows it.
    pub fn record<R: Record>(ctx: &Ctx, record: &R, view: Views) -> Answer {
        let mut data = Vec::with_capacity(512);
        record.write_json(view, ctx, &mut data);
        Answer { version: Some(record.base().version), ..Answer::data(Outcome::Done, data) }
    }

    /// The same, of a record that was just made.
    pub fn created<R: Record>(ctx: &Ctx, record: &R, view: Views) -> Answer {
        Answer {
            outcome: Outcome::Created,
            location: Some(resources::location(record)),
            ..Answer::record(ctx, record, view)
        }
    }

    /// A content instead of JSON.
    pub fn content(content: Content) -> Answer {
        Answer { content: Some(content), ..Answer::empty() }
    }

    /// None yet: `work` is done first.
    pub fn after(work: impl Fn(&App, &Caller) -> Result<Work> + Send + Sync + 'static) -> Answer {
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
