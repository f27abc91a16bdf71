//! Permissions of the data folder: what the program stores is only for its own user.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

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

/// A user as whom this process goes on.
pub struct Owner {
    /// The name, or `#` and the number.
    pub name: String,
}

/// Takes on the user who owns a folder, if this process runs as root and the folder belongs to somebody else; for good. What root
/// opens there could be a link that its owner has put in place, to a file of root, and what root creates there the owner could
/// not use. Must be called before anything in the folder is opened, and before any thread is started: each has its own user.
pub fn take_on_owner(folder: &Path) -> Result<Option<Owner>, String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let Some(found) = owned(folder) else { return Ok(None) };
    let owner = Owner { name: user_name(found.uid()) };
    let failed = |why: String| {
        format!(
            "{} belongs to the user {}, as whom root cannot go on: {why}; run the command as that user",
            folder.display(),
            owner.name
        )
    };
    become_user(found.uid(), found.gid()).map_err(failed)?;
    Ok(Some(owner))
}

/// Returns what a folder belongs to: its owner, that of the link in its place, or, if it does not exist, that of the folder in which
/// it would be created. `None` if that is root.
fn owned(folder: &Path) -> Option<Metadata> {
    let whole = std::path::absolute(folder).ok()?;
    let there = whole.ancestors().find(|part| part.symlink_metadata().is_ok())?;
    let found = [there.symlink_metadata(), there.metadata()];
    found.into_iter().filter_map(Result::ok).find(|found| found.uid() != 0)
}

#[cfg(target_os = "linux")]
fn become_user(user: u32, group: u32) -> Result<(), String> {
    use rustix::thread::{Gid, Uid, set_thread_gid, set_thread_groups, set_thread_uid};

    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    if threads.is_ok_and(|threads| threads != 1) {
        return Err("the program has started threads already".to_string());
    }
    let groups: Vec<Gid> = groups_of(user, group).into_iter().map(Gid::from_raw).collect();
    let first = groups.first().copied().unwrap_or(Gid::from_raw(group));
    let changed = set_thread_groups(&groups).and_then(|()| set_thread_gid(first));
    changed.and_then(|()| set_thread_uid(Uid::from_raw(user))).map_err(|error| error.to_string())?;
    // Nobody may go back.
    match rustix::process::geteuid().is_root() || set_thread_uid(Uid::ROOT).is_ok() {
        true => Err("the user did not change".to_string()),
        false => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn become_user(_: u32, _: u32) -> Result<(), String> {
    Err("this system has no call for it".to_string())
}

/// Returns the groups of a user, the one for new files first: those that the system knows, or else that of the folder.
#[cfg(target_os = "linux")]
fn groups_of(user: u32, group: u32) -> Vec<u32> {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let (users, groups) = (read("/etc/passwd"), read("/etc/group"));
    let known = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let (name, number, primary) =
            (*fields.first()?, fields.get(2)?.parse::<u32>().ok()?, fields.get(3)?.parse().ok()?);
        (number == user).then_some((name, primary))
    });
    let Some((name, primary)) = known else { return vec![group] };
    let mut all: Vec<u32> = vec![primary];
    all.extend(groups.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let number = fields.get(2)?.parse::<u32>().ok().filter(|number| *number != primary)?;
        fields.get(3)?.split(',').any(|member| member == name).then_some(number)
    }));
    all
}

/// Removes the permissions of others from an existing data folder, its database and its key, which others
/// may have made.
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
    let mut options = File::options();
    // Root changes nothing behind a link, which somebody else may have put there.
    let links = if rustix::process::geteuid().is_root() { OFlags::NOFOLLOW } else { OFlags::empty() };
    options.read(true).custom_flags((links | OFlags::NONBLOCK).bits().cast_signed());
    let Ok(file) = options.open(path) else { return };
    let Ok(found) = file.metadata() else { return };
    let mode = found.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return;
    }
    let place = path.display();
    if let Err(why) = without_others(path, &file, &found) {
        tracing::warn!(%place, mode = %format!("{mode:o}"), %why, "Other users of this machine may read data of Kantoor. Restrict the permissions to the user of the program.");
        return;
    }
    tracing::warn!(%place, mode = %format!("{mode:o}"), "Other users of this machine could access data of Kantoor; the permissions are now restricted to the user of the program.");
}

fn without_others(path: &Path, file: &File, found: &Metadata) -> Result<(), String> {
    if found.mode() & STICKY != 0 || path.parent().is_none() {
        return Err("the folder is shared with other programs".to_string());
    }
    let mode = found.mode() & 0o7777 & !OTHERS;
    // Of the file that was looked at, whatever has its name now.
    file.set_permissions(Permissions::from_mode(mode)).map_err(|error| error.to_string())
}
