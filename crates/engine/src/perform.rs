//! The API without HTTP: internal requests use the same routes, validation and events as those of callers.

use serde_json::Value;
use store::Tx;

use crate::call::{Answer, Call, Query};
use crate::context::Ctx;
use crate::error::{Code, Error, Result};
use crate::json::Json;
use crate::records::Work;
use crate::registry::routes;

/// Validates a request without performing it.
pub fn prepare(method: &str, path: &str, body: Option<&Value>) -> Result<Work> {
    let nowhere = || Error::new(Code::NotFound, format!("No route matches {method} {path}."));
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let found = routes().at(path).map_err(|_| nowhere())?;
    let route = found.value.iter().find(|route| route.method.name() == method).ok_or_else(nowhere)?;
    let call = Call {
        path: found.params.iter().map(|(_, text)| text.to_string()).collect(),
        query: Query::parse(query)?,
        body: body.map(|body| Json::parse(body.to_string().as_bytes())).transpose()?,
        early: true,
        ..Call::default()
    };
    (route.handler)(call)
}

/// Rejects a response that is only determined after work outside the transaction: nobody inside it can wait for that, and
/// it must not look as if the work were done. The caller rolls back what the first part wrote. A handler that can leave the
/// rest to a job does so if the call is `early`.
pub fn completed(answer: Answer) -> Result<Answer> {
    if answer.after.is_none() {
        return Ok(answer);
    }
    let message = "This takes work outside the database, such as checking a URL or decoding an image, so it cannot be part of another change. Send it as a request of its own.";
    Err(Error::new(Code::ValidationFailed, message))
}

/// Performs a request in the transaction of the caller; returns its `data`.
pub fn perform(tx: &mut Tx, ctx: &Ctx, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
    perform_warned(tx, ctx, method, path, body).map(|(data, _)| data)
}

/// Performs a request; returns its `data` and the warnings in its `meta`, or null.
pub fn perform_warned(
    tx: &mut Tx,
    ctx: &Ctx,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<(Value, Value)> {
    let answer = completed(prepare(method, path, body)?(tx, ctx)?)?;
    let read = |json: &[u8]| {
        serde_json::from_slice(json).map_err(|error| Error::internal(format!("a response is not valid JSON: {error}")))
    };
    let data = if answer.data.is_empty() { Value::Null } else { read(&answer.data)? };
    let warnings = answer.meta.iter().find_map(|member| member.strip_prefix("\"warnings\":"));
    Ok((data, warnings.map_or(Ok(Value::Null), |list| read(list.as_bytes()))?))
}
