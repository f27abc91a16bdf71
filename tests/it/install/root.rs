//! Commands that root runs on the data of somebody else: they go on as the owner of the data folder, so what the owner put there
//! reaches nothing else.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::support::Db;

on_both![links_in_the_data_folder_lead_nowhere, what_root_makes_belongs_to_the_owner,];

/// The user of the service, whom the machine need not know.
const SERVICE: u32 = 4321;

fn give(path: &Path) {
    let _ = std::os::unix::fs::lchown(path, Some(SERVICE), Some(SERVICE));
    if path.symlink_metadata().unwrap().is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
    }
}

/// Prepares data of the service, in a folder that everybody may enter; `None` if this is not root.
fn of_service(db: &Db) -> Option<()> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can change owners");
        return None;
    }
    std::fs::set_permissions(db.folder.path(), Permissions::from_mode(0o755)).unwrap();
    assert!(kantoor(db, &["account", "create", "A"]).status.success());
    give(&db.data);
    Some(())
}

fn state(path: &Path) -> (u32, u32, u32) {
    let found = path.metadata().unwrap();
    (found.mode() & 0o7777, found.uid(), found.gid())
}

fn links_in_the_data_folder_lead_nowhere(db: Db) {
    let Some(()) = of_service(&db) else { return };
    let outside = tempfile::tempdir().unwrap();
    std::fs::set_permissions(outside.path(), Permissions::from_mode(0o755)).unwrap();
    let (folder, file) = (outside.path().join("folder"), outside.path().join("file"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("x"), "x").unwrap();
    std::fs::write(&file, "of root").unwrap();
    for (path, mode) in [(&folder, 0o755), (&folder.join("x"), 0o644), (&file, 0o644)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let places = [outside.path().to_path_buf(), folder.clone(), folder.join("x"), file.clone()];
    let before = places.each_ref().map(|path| state(path));
    let plant = |name: &str, to: &Path| {
        let path = db.data.join(name);
        let _ = std::fs::remove_dir_all(&path);
        symlink(to, &path).unwrap();
        let _ = std::os::unix::fs::lchown(&path, Some(SERVICE), Some(SERVICE));
    };
    for (name, to) in [("mail", &folder), ("backups", &folder), ("files", &folder), ("kantoor.lock", &file)] {
        plant(name, to);
        for command in [&["account", "list"][..], &["account", "create", "B"], &["verify"], &["doctor"], &["migrate"]] {
            kantoor(&db, command);
            let after = places.each_ref().map(|path| state(path));
            assert_eq!(after, before, "{name}, {command:?}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "of root", "{name}, {command:?}");
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{name}, {command:?}");
        }
    }
}

fn what_root_makes_belongs_to_the_owner(db: Db) {
    let Some(()) = of_service(&db) else { return };
    assert!(kantoor(&db, &["account", "create", "B"]).status.success());
    std::fs::read_dir(&db.data).unwrap().for_each(|entry| {
        let path = entry.unwrap().path();
        assert_eq!(path.metadata().unwrap().uid(), SERVICE, "{}", path.display());
    });
    // So does a data folder that is not there yet, in a folder of somebody else, and one behind a link of somebody else.
    let theirs = tempfile::tempdir().unwrap();
    chown(theirs.path(), Some(SERVICE), Some(SERVICE)).unwrap();
    let of_root = tempfile::tempdir().unwrap();
    symlink(of_root.path(), theirs.path().join("link")).unwrap();
    give(theirs.path());
    let run = |name: &str| kantoor(&db, &["migrate", "--data", theirs.path().join(name).to_str().unwrap()]);
    if db.url.is_empty() {
        assert!(run("new").status.success());
        assert_eq!(theirs.path().join("new/kantoor.db").metadata().unwrap().uid(), SERVICE);
        assert!(!run("link").status.success());
        assert_eq!(std::fs::read_dir(of_root.path()).unwrap().count(), 0);
    }
    // A place that only root may use is not opened with the rights of root.
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("b.kantoor");
    let words = complained(&kantoor(&db, &["backup", file.to_str().unwrap()]));
    assert!(words.contains("goes on as the user #4321") && words.contains("name a place"), "{words}");
    assert!(!file.exists());
    chown(place.path(), Some(SERVICE), Some(SERVICE)).unwrap();
    let done = kantoor(&db, &["backup", "--with-key", file.to_str().unwrap()]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(state(&file), (0o600, SERVICE, SERVICE));
    assert!(said(&kantoor(&db, &["account", "list"])).contains('B'));
}
