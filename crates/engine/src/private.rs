//! Permissions of the data folder: what the program stores is only for its own user.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use crate::config::Config;
use crate::secrets::key_file::KeySource;

/// The permissions of the group and of others.
const OTHERS: u32 = 0o077;
/// A folder that everybody shares, such as /tmp.
const STICKY: u32 = 0o1000;

/// Lets only its own user access the files that this process creates: the database, the contents of files, backups.
pub fn create_privately() {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
}

/// Creates a folder with its parents.
pub fn create_folder(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates a folder with its parents. What root creates belongs to the owner of the folder `like`.
pub fn create_folder_like(folder: &Path, like: &Path) -> std::io::Result<()> {
    let is_new = |part: &&Path| !part.as_os_str().is_empty() && !part.exists();
    let new: Vec<&Path> = folder.ancestors().take_while(is_new).collect();
    create_folder(folder)?;
    if let (true, Ok(owner)) = (rustix::process::geteuid().is_root(), std::fs::metadata(like)) {
        new.iter().for_each(|part| give(part, (owner.uid(), owner.gid())));
    }
    Ok(())
}

/// Says that this user may not read a file, and who may; a sentence. None if it can be read or does not exist.
pub fn unreadable(path: &Path) -> Option<String> {
    let error = File::open(path).err().filter(|error| error.kind() == ErrorKind::PermissionDenied)?;
    let user = user_name(rustix::process::geteuid().as_raw());
    // A folder that may not be entered hides the owner of what is in it.
    let owner = path.ancestors().find_map(|part| std::fs::metadata(part).ok())?;
    let (owner, path) = (user_name(owner.uid()), path.display());
    Some(format!(
        "{path} cannot be read by the user {user}: {error}. Run the command as the user {owner} (`sudo -u {owner} kantoor …`)."
    ))
}

fn user_name(id: u32) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_string())
    });
    own.unwrap_or_else(|| format!("#{id}"))
}

/// Gives everything in a folder to the owner of the folder, if this process runs as root: an administrator who runs a command
/// must not leave files that the service cannot write. `skipped` is the name of a folder in it that is left as it is.
pub fn hand_over(folder: &Path, skipped: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    if let Ok(owner) = std::fs::metadata(folder) {
        hand_over_to((owner.uid(), owner.gid()), folder, skipped);
    }
}

/// Gives some files in a folder to the owner of the folder, if this process runs as root.
pub fn hand_over_files(folder: &Path, names: &[&str]) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let Ok(owner) = std::fs::metadata(folder) else { return };
    for path in names.iter().map(|name| folder.join(name)) {
        if std::fs::symlink_metadata(&path).is_ok_and(|found| found.uid() != owner.uid()) {
            give(&path, (owner.uid(), owner.gid()));
        }
    }
}

fn give(path: &Path, owner: (u32, u32)) {
    if let Err(why) = std::os::unix::fs::lchown(path, Some(owner.0), Some(owner.1)) {
        tracing::warn!(place = %path.display(), %why, "The owner of a file could not be changed to that of the data folder.");
    }
}

fn hand_over_to(owner: (u32, u32), folder: &Path, skipped: &str) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().filter_map(std::io::Result::ok) {
        let (path, Ok(found)) = (entry.path(), entry.metadata()) else { continue };
        if entry.file_name() == skipped {
            continue;
        }
        if found.uid() != owner.0 {
            give(&path, owner);
        }
        if found.is_dir() {
            hand_over_to(owner, &path, "");
        }
    }
}

/// Removes the permissions of others from an existing data folder, its database and its key. Earlier versions did not
/// restrict them.
pub fn tighten(config: &Config) {
    let mut paths = vec![config.data.clone()];
    for name in ["", "-wal", "-shm"] {
        paths.push(config.data.join(format!("{}{name}", store::SQLITE_COPY)));
    }
    paths.extend([config.data.join("files"), config.data.join("mail")]);
    if !config.files.is_empty() && !config.files.starts_with("s3://") {
        paths.push(PathBuf::from(&config.files));
    }
    if let KeySource::File(path) = KeySource::of(config) {
        paths.push(path);
    }
    paths.iter().for_each(|path| tighten_one(path));
}

fn tighten_one(path: &Path) {
    let Ok(found) = std::fs::metadata(path) else { return };
    let mode = found.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return;
    }
    let place = path.display();
    if let Err(why) = without_others(path, &found) {
        tracing::warn!(%place, mode = %format!("{mode:o}"), %why, "Other users of this machine may read data of Kantoor. Restrict the permissions to the user of the program.");
        return;
    }
    tracing::warn!(%place, mode = %format!("{mode:o}"), "Other users of this machine could access data of Kantoor; the permissions are now restricted to the user of the program.");
}

fn without_others(path: &Path, found: &Metadata) -> Result<(), String> {
    if found.mode() & STICKY != 0 || path.parent().is_none() {
        return Err("the folder is shared with other programs".to_string());
    }
    let mode = found.mode() & 0o7777 & !OTHERS;
    std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|error| error.to_string())
}
