//! The pools of this process whose places the accounts share, in one list: see [`store::Places`].

use std::sync::Arc;
use std::time::Duration;

use store::{Place, Places};

use crate::app::App;
use crate::error::{Code, Error, Result};

/// How long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(30);

/// Creates a pool for work that uses a processor for milliseconds or longer. An account uses half of the processors at most.
pub fn of_processors(name: &'static str) -> Arc<Places> {
    Places::with_share(name, std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2)))
}

/// Waits for the next place of an account.
pub async fn take(places: &Arc<Places>, account: i64) -> Result<Place> {
    places.take_within(account, PATIENCE).await.ok_or_else(|| {
        let message = "The server is busy with other requests; retry shortly.";
        Error { retry_after: Some(1), ..Error::new(Code::Overloaded, message) }
    })
}

/// Returns all pools of a process.
pub fn pools(app: &App) -> Vec<Arc<Places>> {
    let own = [&app.decoding, app.store.slow_reads(), app.bodies.slow(), app.listeners.streams()];
    own.into_iter().chain(&app.workers).chain(app.services.pools()).cloned().collect()
}
