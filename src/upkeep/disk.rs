//! How much room is left on the disk.

use std::path::Path;

use engine::app::App;
use engine::http::metrics::Metric;

/// Returns the free bytes of the disk with this folder.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let state = rustix::fs::statvfs(folder).ok()?;
    Some(state.f_bavail.saturating_mul(state.f_frsize))
}

/// The free bytes of the disk with the data folder.
pub fn free(app: &App) -> Metric {
    // Without a data folder, as on PostgreSQL with files elsewhere, it is the disk that the program runs on.
    let free = free_bytes(&app.config.data).or_else(|| free_bytes(Path::new("."))).unwrap_or_default();
    ("disk_free_bytes", "gauge", "Free space on the disk with the data folder", free)
}
