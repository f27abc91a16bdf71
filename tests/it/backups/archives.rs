//! Backups as one file: made while the server runs, encrypted by choice, restored and checked.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::empty_like;
use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::Db;

/// An age identity and its recipient, and another identity.
pub const IDENTITY: &str = "AGE-SECRET-KEY-1T2GZX63Y4GR5WEMMQU0TNMXLL59SFXFUJGNTDE8G3L775PLGG74QGTH758";
pub const RECIPIENT: &str = "age1a5zeeqvzqy9nfjltscsgc88ujgft4u8wgmc38clfjjgku0kdt3qqw0hnfp";
const OTHER: &str = "AGE-SECRET-KEY-14LV9F99NKP5QXHF0GFW32YWJWJRALRGP75ADAA3FUACDQMRL2PZSAFPUPW";

on_both![
    an_archive_is_restored_and_served,
    an_encrypted_archive_needs_its_identity,
    refuses_what_is_not_a_whole_backup,
    refuses_a_target_that_is_in_use,
    leaves_nothing_of_a_restore_that_fails,
    folders_are_restored_too,
];

fn backed_up(db: &Db, target: &Path, others: &[&str]) {
    let mut arguments = vec!["backup", target.to_str().unwrap()];
    arguments.extend(others);
    let done = kantoor(db, &arguments);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A database with a product and two files; returns the key of the account.
fn filled(db: &Db) -> String {
    let binary = Binary::start(db, "", &["--set", "workers=0"]);
    binary.client.post("/v1/products", json!({"name": "Bolt"})).expect(201);
    binary.client.upload("a.bin", &[7; 300_000]).expect(201);
    binary.client.upload("empty.bin", b"").expect(201);
    binary.client.key.clone()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn an_archive_is_restored_and_served(db: Db) {
    let key = filled(&db);
    let running = Binary::start(&db, &key, &["--set", "workers=0"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("monday.kantoor");
    backed_up(&db, &file, &["--with-key"]);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(entries(folder.path()), std::slice::from_ref(&file), "nothing else is left");
    let again = kantoor(&db, &["backup", file.to_str().unwrap()]);
    assert!(complained(&again).contains("already exists"));
    drop(running);

    let checked = kantoor(&db, &["restore", "--check", file.to_str().unwrap()]);
    assert!(checked.status.success(), "{checked:?}");
    assert!(said(&checked).contains("2 files (300,000 bytes): no problems"), "{}", said(&checked));
    assert!(!entries(&db.data).iter().any(|path| path.to_string_lossy().contains("unfinished")));

    let own = empty_like(&db);
    let restored = kantoor(&own, &["restore", file.to_str().unwrap()]);
    assert!(restored.status.success(), "{restored:?}");
    let verified = kantoor(&own, &["verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
    let binary = Binary::start(&own, &key, &["--set", "workers=0"]);
    let products = binary.client.get("/v1/products").data();
    assert_eq!(products[0]["name"], "Bolt");
    let files = binary.client.get("/v1/files").data();
    let file = files.as_array().unwrap().iter().find(|file| file["name"] == "a.bin").unwrap();
    let content = binary.client.get(&format!("/v1/files/{}/content", file["id"].as_str().unwrap()));
    assert_eq!(content.bytes, vec![7; 300_000]);
}

fn an_encrypted_archive_needs_its_identity(db: Db) {
    filled(&db);
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("b.tar.zst.age"), folder.path().join("key.txt"));
    std::fs::write(&key, format!("# created: 2026-11-16\n{IDENTITY}\n")).unwrap();
    let wrong = kantoor(&db, &["backup", file.to_str().unwrap(), "--to", "age1nobody"]);
    assert!(complained(&wrong).contains("--to: 'age1nobody' is not an age recipient"), "{wrong:?}");
    let wrong = kantoor(&db, &["backup", folder.path().join("b").to_str().unwrap(), "--to", RECIPIENT]);
    assert!(complained(&wrong).contains("an encrypted backup is one file"), "{wrong:?}");
    backed_up(&db, &file, &["--to", RECIPIENT, "--with-key"]);
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"age-encryption.org/v1\n") && !bytes.windows(11).any(|part| part == b"kantoor.db\0"));

    let own = empty_like(&db);
    let restore = |arguments: &[&str]| {
        let mut all = vec!["restore", file.to_str().unwrap()];
        all.extend(arguments);
        kantoor(&own, &all)
    };
    assert!(complained(&restore(&[])).contains("the backup is encrypted"));
    let other = folder.path().join("other.txt");
    std::fs::write(&other, OTHER).unwrap();
    let wrong = complained(&restore(&["--identity", other.to_str().unwrap()]));
    assert!(wrong.contains("another age recipient") && !wrong.contains("SECRET"), "{wrong}");
    std::fs::write(&other, "AGE-SECRET-KEY-1HUSH").unwrap();
    let wrong = complained(&restore(&["--identity", other.to_str().unwrap()]));
    assert!(wrong.contains("not a file with age identities") && !wrong.contains("HUSH"), "{wrong}");
    let done = restore(&["--identity", key.to_str().unwrap()]);
    assert!(done.status.success(), "{done:?}");
    assert!(kantoor(&own, &["verify"]).status.success());
}

/// Restores `source` to a new place, where nothing may be afterwards; returns what was said.
#[track_caller]
fn refused(db: &Db, source: &Path) -> String {
    let mut own = empty_like(db);
    own.data = own.folder.path().join("new");
    let done = kantoor(&own, &["restore", source.to_str().unwrap()]);
    let words = complained(&done);
    assert_eq!(done.status.code(), Some(1), "{words}");
    assert!(!own.data.exists(), "{words}: {:?}", entries(&own.data));
    assert!(said(&done).is_empty(), "{}", said(&done));
    // An empty database takes the next one.
    if !own.url.is_empty() {
        let again = kantoor(&own, &["restore", source.to_str().unwrap()]);
        assert_eq!(complained(&again), words);
    }
    words
}

fn refuses_what_is_not_a_whole_backup(db: Db) {
    filled(&db);
    let folder = tempfile::tempdir().unwrap();
    let (file, parts) = (folder.path().join("b.kantoor"), folder.path().join("parts"));
    backed_up(&db, &file, &["--with-key"]);
    let whole = std::fs::read(&file).unwrap();
    let broken = folder.path().join("broken");
    for length in [whole.len() - 1, whole.len() / 2, 100] {
        std::fs::write(&broken, &whole[..length]).unwrap();
        let words = refused(&db, &broken);
        assert!(words.contains("damaged or incomplete"), "{words}");
    }
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    std::fs::write(&broken, &altered).unwrap();
    assert!(refused(&db, &broken).contains("damaged"), "{}", refused(&db, &broken));
    for foreign in ["", "hello", "SQLite format 3\0"] {
        std::fs::write(&broken, foreign).unwrap();
        assert!(refused(&db, &broken).contains("this is not a backup of Kantoor; name what `kantoor backup` made"));
    }
    assert!(refused(&db, &folder.path().join("none")).contains("does not exist"));

    backed_up(&db, &parts, &[]);
    let manifest = parts.join("backup.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let mut newer: Value = serde_json::from_str(&text).unwrap();
    newer["schema"] = json!(9999);
    std::fs::write(&manifest, newer.to_string()).unwrap();
    assert!(refused(&db, &parts).contains("of a newer version"), "{}", refused(&db, &parts));
    newer["schema"] = json!(1);
    newer["database"]["sha256"] = json!("00");
    std::fs::write(&manifest, newer.to_string()).unwrap();
    assert!(refused(&db, &parts).contains("the database is not the one that was backed up"));
    std::fs::write(&manifest, &text).unwrap();
    let list = std::fs::read_to_string(parts.join("files.sha256")).unwrap();
    let content = parts.join(list.lines().next().unwrap().split_once("  ").unwrap().1);
    std::fs::remove_file(&content).unwrap();
    assert!(refused(&db, &parts).contains("is missing"), "{}", refused(&db, &parts));
    std::fs::write(&content, "x").unwrap();
    assert!(refused(&db, &parts).contains("the files are not those that were backed up"));
}

fn refuses_a_target_that_is_in_use(db: Db) {
    let key = filled(&db);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.kantoor");
    backed_up(&db, &file, &["--with-key"]);
    let restore = |db: &Db| complained(&kantoor(db, &["restore", file.to_str().unwrap()]));
    let is_sqlite = db.url.is_empty();
    let running = Binary::start(&db, &key, &["--set", "workers=0"]);
    let words = restore(&db);
    let (process, place) = (running.child.id(), db.data.display());
    let expected = match is_sqlite {
        true => format!("kantoor: a server (process {process}) is using the folder {place}; restore to another folder"),
        false => "a server may be using it; create an empty one (createdb) and restore to that".to_string(),
    };
    assert!(words.contains(&expected) && words.lines().count() == 1, "{words}");
    running.client.post("/v1/products", json!({"name": "Nut"})).expect(201);
    drop(running);
    let words = restore(&db);
    assert!(words.contains(if is_sqlite { "there is a database in" } else { "contains data of Kantoor" }), "{words}");
    assert!(kantoor(&db, &["verify"]).status.success());
    let mut own = empty_like(&db);
    own.data = own.folder.path().join("new");
    std::fs::create_dir_all(own.data.join("files/x")).unwrap();
    std::fs::write(own.data.join("files/x/y"), "old").unwrap();
    let words = restore(&own);
    assert!(words.contains("there are files in"), "{words}");
    assert_eq!(entries(&own.data), [own.data.join("files")]);
    // A folder on a disk that is not mounted, and no folder at all.
    own.data = own.folder.path().join("usb/new");
    let words = restore(&own);
    assert!(words.contains("/usb does not exist; create it, or mount its disk"), "{words}");
    assert!(!own.folder.path().join("usb").exists());
    own.data.clone_from(&file);
    assert!(restore(&own).contains("is a file; restore to a folder with --data"));
    // A backup of the other database.
    let other = if is_sqlite { Db::postgres().map(Db::emptied) } else { Some(Db::sqlite().emptied()) };
    if let Some(mut other) = other {
        other.data = other.folder.path().join("new");
        let words = restore(&other);
        assert!(words.contains("this is a backup of"), "{words}");
        assert!(!other.data.exists());
    }
}

/// A file that may not grow is as good as a full disk.
fn leaves_nothing_of_a_restore_that_fails(db: Db) {
    filled(&db);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.kantoor");
    backed_up(&db, &file, &["--with-key"]);
    let mut own = empty_like(&db);
    own.data = own.folder.path().join("new");
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; ulimit -f 20; exec \"$0\" restore \"$1\"", env!("CARGO_BIN_EXE_kantoor")]);
    command.arg(&file).env("KANTOOR_DATABASE_URL", &own.url).env("KANTOOR_DATA", &own.data);
    let done = command.output().unwrap();
    let words = complained(&done);
    assert!(words.contains("too large") && done.status.code() == Some(1), "{words}");
    assert!(!own.data.exists(), "{:?}", entries(&own.data));
    let done = kantoor(&own, &["restore", file.to_str().unwrap()]);
    assert!(done.status.success(), "{done:?}");
}

fn folders_are_restored_too(db: Db) {
    filled(&db);
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("parts");
    backed_up(&db, &parts, &[]);
    let own = empty_like(&db);
    let words = complained(&kantoor(&own, &["restore", parts.to_str().unwrap()]));
    assert!(words.contains("which is not there") && words.contains("--trust-unsigned"), "{words}");
    let done = kantoor(&own, &["restore", "--trust-unsigned", parts.to_str().unwrap()]);
    assert!(done.status.success() && said(&done).contains("Secrets and signatures were not checked"), "{done:?}");
    assert!(said(&done).contains("Nothing proves who made the backup"), "{done:?}");
    assert!(!kantoor(&own, &["verify"]).status.success(), "the key is missing");
    let checked = kantoor(&own, &["restore", "--check", "--trust-unsigned", parts.to_str().unwrap()]);
    assert!(!checked.status.success() && complained(&checked).contains("failed verification"), "{checked:?}");
    std::fs::copy(db.data.join("secret.key"), own.data.join("secret.key")).unwrap();
    assert!(kantoor(&own, &["verify"]).status.success());
    let checked = kantoor(&own, &["restore", "--check", parts.to_str().unwrap()]);
    assert!(checked.status.success(), "{checked:?}");
}
