//! Pages for people without a key: the page of a document, the payment sandbox, signing in, and the webhooks of payment
//! providers.

mod console;
mod factors;
mod hooks;
mod oidc;
mod public;
mod sandbox;
mod sign_in;
mod two_factor;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, Response};
use engine::app::App;
use engine::error::{Code, Error};
use engine::http::{dispatch, reply};
use engine::registry::Page;

/// The pages of the registry.
pub const PAGES: &[Page] = &[
    Page { prefix: "/d/", route, answer: |app, request| Box::pin(public::answer(app, request)) },
    Page { prefix: "/sandbox/", route, answer: |app, request| Box::pin(sandbox::answer(app, request)) },
    Page { prefix: "/hooks/", route, answer: |app, request| Box::pin(hooks::answer(app, request)) },
    Page { prefix: "/console/", route: console::route, answer: |app, request| Box::pin(console::answer(app, request)) },
    signing_in("/sign-in"),
    signing_in("/sign-in-link"),
    signing_in("/sign-in-link/"),
    signing_in("/two-factor"),
    signing_in("/oidc/start"),
    signing_in("/oidc/callback"),
    signing_in("/sign-out"),
    signing_in("/forgot"),
    signing_in("/set-up"),
    signing_in("/set-up/"),
    signing_in("/invite"),
    signing_in("/invite/"),
    signing_in("/reset"),
    signing_in("/reset/"),
    Page { prefix: "/thanks", route, answer: |app, request| Box::pin(thank(app, request)) },
];

/// A page to sign in, or to open a link.
const fn signing_in(prefix: &'static str) -> Page {
    Page { prefix, route: sign_in::route, answer: |app, request| Box::pin(sign_in::answer(app, request)) }
}

/// Returns the route of a path with placeholders, so that ids create no new metric series.
fn route(path: &str) -> &'static str {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match *parts {
        ["d", _] => "/d/{token}",
        ["d", _, "pdf"] => "/d/{token}/pdf",
        ["d", _, "logo"] => "/d/{token}/logo",
        ["d", _, "accept"] => "/d/{token}/accept",
        ["d", _, "reject"] => "/d/{token}/reject",
        ["d", _, "pay"] => "/d/{token}/pay",
        ["sandbox", _] => "/sandbox/{id}",
        ["hooks", "mollie", _, "payment", _] => "/hooks/mollie/{account}/payment/{id}",
        ["hooks", "mollie", _, "verification", _] => "/hooks/mollie/{account}/verification/{id}",
        ["thanks"] => "/thanks",
        _ => "",
    }
}

/// `GET /thanks`: the page that clients return to after paying.
async fn thank(app: Arc<App>, request: Request<Body>) -> Response<Body> {
    let (request_id, nonce) = (dispatch::request_id(&app, request.headers()), app.ids.token());
    let refuse = |error: &Error| reply::error_response(error, &request_id, false);
    let mut response = if let Err(error) = app.visitors.limit(request.extensions(), request.headers()) {
        refuse(&error)
    } else if !matches!(*request.method(), Method::GET | Method::HEAD) {
        reply::with_allow(refuse(&Error::new(Code::MethodNotAllowed, "Only GET is supported here.")), "GET, HEAD")
    } else {
        sandbox::thanks(&nonce)
    };
    reply::finish(&mut response, &request_id);
    public::protect(response.headers_mut(), &nonce, "'none'");
    if request.method() == Method::HEAD { dispatch::without_body(response) } else { response }
}
