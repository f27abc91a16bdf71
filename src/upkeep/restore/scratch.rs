//! A folder for work in progress, which is deleted in any case.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::upkeep::backup::{UNFINISHED, plain};

/// The file that is locked while the folder is in use.
const LOCK: &str = "lock";

/// A folder that is deleted with this value.
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Creates a folder in `parent`, and deletes those that a killed process left there.
    pub fn create(parent: &Path, name: &str) -> Result<Scratch, String> {
        let told = |error: std::io::Error| format!("{}: {}", parent.display(), plain(&error));
        for entry in std::fs::read_dir(parent).map_err(told)?.filter_map(Result::ok) {
            let (path, own) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let is_ours =
                own.strip_prefix(name).is_some_and(|rest| rest.starts_with('-') && rest.ends_with(UNFINISHED));
            if is_ours && File::open(path.join(LOCK)).is_ok_and(|file| file.try_lock().is_ok()) {
                let _ = std::fs::remove_dir_all(path);
            }
        }
        let path = parent.join(format!("{name}-{}{UNFINISHED}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(told)?;
        let lock = File::create(path.join(LOCK)).map_err(told)?;
        // A file system without locks leaves the folder of a killed process.
        let _ = lock.try_lock();
        Ok(Scratch { path, _lock: lock })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
