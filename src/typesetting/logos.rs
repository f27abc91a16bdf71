//! The logo of a document. The compiler only gets images that the program wrote: a logo is re-encoded before it becomes one. One of an
//! earlier version was not, so a reading process does it here.

use std::sync::{Mutex, PoisonError};

use engine::app::App;
use engine::config::Config;
use engine::error::Result;
use engine::services::Services;
use tokio::runtime::Handle;

use crate::reading::{Source, picture};

/// The number of cached images.
const KEPT: usize = 8;

/// A cache of re-encoded logos by their content: a logo is on every document. Those that cannot be used are in it as well.
#[derive(Default)]
pub struct Redrawn(Mutex<Vec<(String, Option<Vec<u8>>)>>);

/// Opens the cache.
pub fn open(_: &Config, _: &str, services: &mut Services) -> Result<()> {
    services.add(Redrawn::default());
    Ok(())
}

/// Returns the logo with this content for the compiler, if it exists and can be used; `redrawn` if it was re-encoded before it was
/// stored.
pub fn content(app: &App, account: i64, key: &str, redrawn: bool) -> Result<Option<Vec<u8>>> {
    let cache = || app.services.get::<Redrawn>().0.lock().unwrap_or_else(PoisonError::into_inner);
    if redrawn {
        return Ok(Handle::current().block_on(app.blobs.read(key)).ok().map(|logo| logo.to_vec()));
    }
    if let Some((_, known)) = cache().iter().find(|(known, _)| known == key) {
        return Ok(known.clone());
    }
    let Ok(bytes) = Handle::current().block_on(app.blobs.read(key)) else { return Ok(None) };
    let caller = app.acting_in(account, "printing")?;
    let drawn = picture::redraw(app, &caller, &Source::Here(bytes))?.ok();
    let mut cache = cache();
    cache.truncate(KEPT - 1);
    cache.insert(0, (key.to_string(), drawn.clone()));
    Ok(drawn)
}
