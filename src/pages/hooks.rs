//! The webhooks of payment providers. A call only triggers a status request to the provider: its content is not
//! trusted, and the response is the same whether the payment exists or not.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use engine::accounts::Account;
use engine::app::App;
use engine::error::{Code, Error, Result};
use engine::http::{dispatch, reply};
use engine::records;

use super::public;
use crate::payments::collecting::{self, Subject};

/// Handles a request under `/hooks/`: `/hooks/mollie/{account}/{payment|verification}/{id}`.
pub async fn answer(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let request_id = dispatch::request_id(&app, request.headers());
    let mut response = match take(&app, request).await {
        Ok(()) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::OK;
            response
        }
        Err(error) => reply::error_response(&error, &request_id, false),
    };
    reply::finish(&mut response, &request_id);
    response
}

async fn take(app: &Arc<App>, request: Request<Body>) -> Result<()> {
    let (head, body) = request.into_parts();
    app.visitors.limit(&head.extensions, &head.headers)?;
    if head.method != Method::POST {
        return Err(Error::new(Code::MethodNotAllowed, "Only POST is supported here."));
    }
    public::read_form(app, &head, body).await?;
    let mut parts = head.uri.path().trim_start_matches("/hooks/").split('/').map(str::to_string);
    let parts = (parts.next(), parts.next(), parts.next(), parts.next());
    let (Some(_), Some(account), Some(kind), Some(id)) = parts else { return Ok(()) };
    let Some(subject) = Subject::named(&kind) else { return Ok(()) };
    let known = app.store.read(move |tx| match Account::find(tx, &account) {
        Ok(account) => Ok(Some(account)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    });
    let Some(account) = known.await? else { return Ok(()) };
    let caller = app.acting(account, "provider");
    let written = app.store.write(caller.account.number, move |tx| {
        let ctx = caller.writing(tx)?;
        if records::exists(tx, &ctx, subject.table(), &id)? {
            collecting::look_soon(tx, &ctx, subject, &id)?;
        }
        Ok::<_, Error>(())
    });
    written.await
}
