//! Reads. Small ones run where they arrive. Those that may visit many records, and those with a large response, run on
//! threads of their own, on which accounts take turns.

use std::sync::Arc;

use super::reply::Reply;
use super::responses::Unsent;
use crate::app::App;
use crate::call::{Query, Work};
use crate::context::{Actor, Ctx};
use crate::error::{Code, Error, Result};

/// A response of more bytes is large.
const LARGE: usize = 256 * 1024;

/// What a request to read asks for.
pub struct Asked {
    /// Its path.
    pub path: String,
    /// Its parameters.
    pub query: Query,
    /// The parameters that the route does not have.
    pub ignored: Vec<String>,
    /// Whether the route may visit many records, whatever its parameters.
    pub visits_many: bool,
}

/// Runs a read.
pub async fn read(app: &App, unsent: &mut Unsent, caller: Actor, asked: Asked, work: Work) -> Result<Reply> {
    let Asked { path, query, ignored, visits_many } = asked;
    let account = caller.account.number;
    // A filter or a search may match many records; pages and sorts use an index.
    let is_filter = |name: &str| !matches!(name, "page" | "per_page" | "sort" | "order" | "id");
    let may_be_slow = visits_many || query.names().any(is_filter);
    let link = move |page| format!("{path}?{}", query.with_page(page));
    let read = Arc::new(move |tx: &mut store::Tx, max_response: usize| {
        let ctx = Ctx { max_response, ..caller.reading(tx)? };
        Ok::<_, Error>(Reply::of(work(tx, &ctx)?.with_texts("ignored_params", &ignored), &link))
    });
    let small = read.clone();
    let small = move |tx: &mut store::Tx| small(tx, LARGE);
    let done = if may_be_slow {
        app.store.read_apart(account, small).await
    } else {
        let turn = unsent.reading().await?;
        let done = app.store.read(small).await;
        drop(turn);
        done
    };
    match done {
        Err(error) if error.code == Code::ResponseTooLarge => {}
        done => return done,
    }
    // It starts again, since nobody knows how large it becomes.
    let turn = Arc::new(unsent.large().await?);
    let (own, most) = (turn.clone(), app.responses.largest());
    let done = app.store.read_apart(account, move |tx| {
        // Until it is done, whether or not the client still waits for it.
        let _turn = &own;
        read(tx, most)
    });
    let reply = done.await?;
    unsent.count(reply.stored.body.len());
    Ok(reply)
}
