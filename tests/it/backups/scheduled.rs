//! Backups that the server makes by itself.

use std::path::Path;

use engine::clock::Clock;
use kantoor::upkeep::scheduled;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::archives::{IDENTITY, RECIPIENT};
use super::empty_like;
use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::support::{Db, Server};

on_both![
    backups_are_made_kept_and_proven,
    failures_are_counted_and_shown,
    encrypted_backups_are_proven_with_their_identity,
    a_backup_is_made_on_request_as_by_the_server,
    a_backup_follows_its_setting_and_a_restart,
    the_newest_that_was_proven_is_kept,
    a_check_by_hand_counts_too,
    a_database_is_copied_before_it_is_migrated,
];

/// Does what is due, as the server does; returns whether something was.
pub fn turn(server: &Server) -> bool {
    let app = server.app.clone();
    server.block_on(server.apart(move || scheduled::turn(&app))).unwrap().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The id in the names of the backups of a server.
pub fn id(server: &Server) -> String {
    let accounts = server.app.store.read_now(engine::accounts::Account::all).unwrap();
    let hash = Sha256::digest(&accounts[0].uid);
    hash[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn backups_are_made_kept_and_proven(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("backups");
    std::fs::create_dir(&to).unwrap();
    let (data, url) = (db.data.clone(), db.url.clone());
    let server = Server::with(db, |config| {
        config.backup_to = to.to_str().unwrap().to_string();
        config.backup_keep = "2 days".to_string();
        config.backup_check = "7 days".to_string();
    });
    let client = server.recorded_client(None);
    client.post("/v1/products", json!({"name": "Bolt"})).expect(201);
    client.upload("a.bin", b"hello").expect(201);
    let own = id(&server);
    let days = |start: &str| ["01", "02", "03"].map(|day| format!("kantoor-{start}202001{day}T023000Z.tar.zst"));
    // Of this database, of another one, and of one that is not known.
    let (old, others, unnamed) = (days(&format!("{own}-")), days("0123abcd-"), days(""));
    for name in old.iter().chain(&others).chain(&unnamed) {
        std::fs::write(to.join(name), "x").unwrap();
    }
    std::fs::write(to.join("notes.txt"), "x").unwrap();
    assert_eq!(server.metric("kantoor_backup_made_timestamp_seconds"), 0);
    assert!(turn(&server));
    assert!(!turn(&server), "nothing is due");
    let there = names(&to);
    assert!(others.iter().chain(&unnamed).all(|name| there.contains(name)), "{there:?}");
    assert!(there.contains(&"notes.txt".to_string()));
    let mut there: Vec<String> = there.into_iter().filter(|name| name.contains(&own)).collect();
    assert_eq!(there.len(), 2, "{there:?}");
    assert_eq!(there.remove(0), old[2], "the day before stays");
    let now = (Clock::System.now().0 / 1000).unsigned_abs();
    for name in ["kantoor_backup_made_timestamp_seconds", "kantoor_backup_proven_timestamp_seconds"] {
        assert!(now - server.metric(name) < 600, "{name}");
    }
    let size = to.join(&there[0]).metadata().unwrap().len();
    assert_eq!(server.metric("kantoor_backup_bytes"), size);
    assert_eq!(server.metric("kantoor_backup_failures_total"), 0);
    let mut same = Db::at_address(url);
    same.data = data;
    let setting = format!("backup_to={}", to.display());
    let examined = || said(&kantoor(&same, &["doctor", "--set", &setting]));
    assert!(!examined().contains("is no longer there"), "{}", examined());
    std::fs::remove_file(to.join(&there[0])).unwrap();
    assert!(examined().contains("is no longer there"), "{}", examined());
    server.execute("UPDATE backups SET done_at = 1, tried_at = 1 WHERE id = 'make'");
    assert!(turn(&server), "it is due again");
}

fn failures_are_counted_and_shown(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    std::fs::write(&file, "x").unwrap();
    let (data, url) = (db.data.clone(), db.url.clone());
    let server = Server::with(db, |config| config.backup_to = file.join("x").to_str().unwrap().to_string());
    server.recorded_client(None);
    assert!(turn(&server));
    assert!(!turn(&server), "it waits before it tries again");
    assert_eq!(server.metric("kantoor_backup_failures_total"), 1);
    assert_eq!(server.metric("kantoor_backup_made_timestamp_seconds"), 0);
    let mut own = Db::at_address(url);
    own.data = data;
    let to = format!("backup_to={}", file.join("x").display());
    let found = said(&kantoor(&own, &["doctor", "--set", &to]));
    assert!(found.contains("No backup could be made"), "{found}");
    server.execute("UPDATE backups SET done_at = 1, last_error = '' WHERE id = 'make'");
    let found = said(&kantoor(&own, &["doctor", "--set", &to]));
    assert!(found.contains("problem  backups") && found.contains("hours old"), "{found}");
}

fn encrypted_backups_are_proven_with_their_identity(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let identity = folder.path().join("key.txt");
    std::fs::write(&identity, IDENTITY).unwrap();
    let to = folder.path().join("backups");
    let server = Server::with(db, |config| {
        config.backup_to = to.to_str().unwrap().to_string();
        config.backup_recipient = RECIPIENT.to_string();
        config.backup_with_key = true;
        config.backup_check = "1 day".to_string();
        config.backup_identity = identity.to_str().unwrap().to_string();
    });
    server.recorded_client(None);
    assert!(turn(&server));
    let there = names(&to);
    assert!(there.len() == 1 && there[0].ends_with(".tar.zst.age"), "{there:?}");
    assert_eq!(server.metric("kantoor_backup_failures_total"), 0);
    assert!(server.metric("kantoor_backup_proven_timestamp_seconds") > 0);
    // What cannot be restored is not proven.
    std::fs::write(to.join(&there[0]), "x").unwrap();
    server.execute("UPDATE backups SET done_at = 1, tried_at = 1 WHERE id = 'check'");
    assert!(turn(&server));
    assert_eq!(server.metric("kantoor_backup_failures_total"), 1);
    assert!(server.metric("kantoor_backup_proven_timestamp_seconds") < 10);
}

/// The same database, for commands beside the server.
fn beside(db: &Db) -> Db {
    let mut same = Db::at_address(db.url.clone());
    same.data.clone_from(&db.data);
    same
}

fn a_backup_is_made_on_request_as_by_the_server(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("new/backups");
    let same = beside(&db);
    let place = to.to_str().unwrap().to_string();
    let server = Server::with(db, |config| {
        config.backup_to.clone_from(&place);
        config.backup_keep = "1 days".to_string();
    });
    server.recorded_client(None);
    let setting = format!("backup_to={place}");
    let run = || kantoor(&same, &["backup", "--set", &setting, "--set", "backup_keep=1 days"]);
    // It creates its folder, but not that of a disk that is not mounted.
    let words = complained(&run());
    assert!(words.contains("/new does not exist; create it, or mount its disk"), "{words}");
    let found = said(&kantoor(&same, &["doctor", "--set", &setting]));
    assert!(found.contains("problem  backups   ") && found.contains("/new does not exist"), "{found}");
    assert!(!folder.path().join("new").exists());
    std::fs::create_dir(folder.path().join("new")).unwrap();
    let done = run();
    assert!(done.status.success(), "{done:?}");
    let there = names(&to);
    assert!(there.len() == 1 && there[0].starts_with(&format!("kantoor-{}-", id(&server))), "{there:?}");
    assert!(said(&done).contains(&there[0]), "{done:?}");
    assert_eq!(server.metric("kantoor_backup_bytes"), to.join(&there[0]).metadata().unwrap().len());
    assert!(server.metric("kantoor_backup_made_timestamp_seconds") > 0);
    assert!(!turn(&server), "it counts as the one of today");
    // The time in the name has seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert!(run().status.success());
    let newer = names(&to);
    assert!(newer.len() == 1 && newer != there, "the older one is not kept: {newer:?}");
    server.execute("UPDATE backups SET lease_until = 9000000000000 WHERE id = 'make'");
    assert!(complained(&run()).contains("is being made at the moment"));
    server.execute("UPDATE backups SET lease_until = 0 WHERE id = 'make'");
    std::fs::remove_dir_all(&to).unwrap();
    assert!(complained(&run()).contains("the folder with the last backup is gone; mount its disk, or create it"));
    assert!(!to.exists());
    std::fs::write(&to, "in the way").unwrap();
    assert!(complained(&run()).contains("backups"));
    assert_eq!(server.metric("kantoor_backup_failures_total"), 3);
    assert!(complained(&kantoor(&same, &["backup"])).contains("backup_to"));
    assert_eq!(kantoor(&same, &["backup", "--with-key", "--set", &setting]).status.code(), Some(2));
}

fn a_backup_follows_its_setting_and_a_restart(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let started = |place: String| {
        let same = beside(&db);
        let server = Server::with(same, |config| {
            config.backup_to = place;
            config.backup_check = "7 days".to_string();
        });
        if server.app.store.read_now(engine::accounts::Account::all).unwrap().is_empty() {
            server.recorded_client(None);
        }
        server
    };
    let examined = |place: &str| {
        let to = format!("backup_to={place}");
        said(&kantoor(&db, &["doctor", "--set", &to, "--set", "backup_check=7 days"]))
    };
    let server = started(path("one/"));
    assert!(turn(&server) && !turn(&server));
    drop(server);
    let text = examined(&path("two"));
    assert!(text.contains("and there is none in") && !text.contains("is no longer there"), "{text}");
    std::fs::write(path("two"), "in the way").unwrap();
    let server = started(path("two"));
    assert!(turn(&server), "the new place has none");
    assert!(!turn(&server), "it failed, and the one elsewhere is not looked for");
    assert_eq!(server.metric("kantoor_backup_failures_total"), 1);
    drop(server);
    std::fs::remove_file(path("two")).unwrap();
    let server = started(path("two"));
    assert!(turn(&server), "a restart does not wait");
    assert_eq!(names(Path::new(&path("two"))).len(), 1);
    // A check that failed says nothing about a newer backup.
    server.execute("UPDATE backups SET done_at = 1, last_error = 'no such thing' WHERE id = 'check'");
    server.execute("UPDATE backups SET tried_at = 2 WHERE id = 'check'");
    let text = examined(&path("two"));
    assert!(text.contains("advice   backups   An earlier backup could not be restored: no such thing."), "{text}");
    assert!(turn(&server), "the newer one is checked");
    assert!(!examined(&path("two")).contains("could not be restored"));
}

fn the_newest_that_was_proven_is_kept(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap().to_string();
    let server = Server::with(db, |config| {
        config.backup_to = to;
        config.backup_keep = "1 days".to_string();
        config.backup_check = "7 days".to_string();
    });
    server.recorded_client(None);
    let own = id(&server);
    let of_day = |day: u8| format!("kantoor-{own}-2020010{day}T023000Z.tar.zst");
    for day in 1..4 {
        std::fs::write(folder.path().join(of_day(day)), "x").unwrap();
    }
    let now = Clock::System.now().0;
    server.execute(&format!("UPDATE backups SET done_at = {now}, name = '{}' WHERE id = 'check'", of_day(2)));
    assert!(turn(&server));
    let there = names(folder.path());
    assert!(there.len() == 2 && there[0] == of_day(2), "{there:?}");
}

fn a_check_by_hand_counts_too(db: Db) {
    const PROVEN: &str = "kantoor_backup_proven_timestamp_seconds";
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("backups");
    let (data, url) = (db.data.clone(), db.url.clone());
    let server = Server::with(db, |config| config.backup_to = to.to_str().unwrap().to_string());
    server.recorded_client(None);
    assert_eq!(server.metric("kantoor_backup_scheduled"), 1);
    let mut own = Db::at_address(url);
    own.data = data;
    let elsewhere = |name: &str| kantoor(&own, &["restore", "--checked-elsewhere", name]);
    assert!(complained(&elsewhere("x")).contains("there is no scheduled backup yet"));
    assert!(turn(&server));
    let name = names(&to).remove(0);
    let file = to.join(&name);
    let setting = format!("backup_to={}", to.display());
    let examined = || said(&kantoor(&own, &["doctor", "--set", &setting]));
    assert!(examined().contains("No backup has been restored and verified yet."), "{}", examined());

    // A check with the settings of the server counts.
    assert_eq!(server.metric(PROVEN), 0);
    let check = |db: &Db, file: &Path| kantoor(db, &["restore", "--check", file.to_str().unwrap()]);
    let checked = check(&own, &file);
    assert!(checked.status.success() && said(&checked).contains("The server knows of this check now."), "{checked:?}");
    let now = (Clock::System.now().0 / 1000).unsigned_abs();
    assert!(now.abs_diff(server.metric(PROVEN)) < 600);
    assert!(examined().contains("A backup was last restored and verified 0 hours ago."), "{}", examined());

    // One on another machine counts by its name.
    server.execute("UPDATE backups SET done_at = 0, last_error = 'x' WHERE id = 'check'");
    assert!(complained(&elsewhere("kantoor-x.tar.zst")).contains(&format!("the last scheduled backup is {name}")));
    assert_eq!(server.metric(PROVEN), 0);
    let recorded = elsewhere(file.to_str().unwrap());
    assert!(recorded.status.success() && said(&recorded).contains(&name), "{recorded:?}");
    assert!(now.abs_diff(server.metric(PROVEN)) < 600);

    // An older backup says nothing about the newest, and one of another database says nothing at all.
    let newer = name.replace(&name[name.len() - 24..], "29990101T000000Z.tar.zst");
    server.execute(&format!("UPDATE backups SET name = '{newer}' WHERE id = 'make'"));
    server.execute("UPDATE backups SET done_at = 0 WHERE id = 'check'");
    let checked = check(&own, &file);
    let words = format!("It is not recorded, because {newer} is newer");
    assert!(checked.status.success() && said(&checked).contains(&words), "{checked:?}");
    let other = empty_like(&own);
    assert!(kantoor(&other, &["migrate"]).status.success());
    assert!(kantoor(&other, &["account", "create", "Other"]).status.success());
    let foreign = folder.path().join("other.kantoor");
    assert!(kantoor(&other, &["backup", "--with-key", foreign.to_str().unwrap()]).status.success());
    let refused = complained(&check(&own, &foreign));
    assert!(refused.contains("has another one") && refused.contains("--trust-unsigned"), "{refused}");
    let checked = kantoor(&own, &["restore", "--check", "--trust-unsigned", foreign.to_str().unwrap()]);
    assert!(checked.status.success(), "{checked:?}");
    assert!(!said(&checked).contains("The server knows") && !said(&checked).contains("not recorded"), "{checked:?}");
    assert_eq!(server.metric(PROVEN), 0);
    assert!(complained(&kantoor(&empty_like(&own), &["restore", "--checked-elsewhere", &name])).contains("--config"));
}

#[test]
fn rejects_a_schedule_that_cannot_work() {
    let db = Db::sqlite();
    for (settings, why) in [
        (&["backup_at=25:00"][..], "backup_at: expected a time"),
        (&["backup_keep=7"], "backup_keep: expected a list"),
        (&["backup_to=s3://"], "must be a folder or s3://bucket/prefix"),
        (&["backup_to=S3://bucket/x"], "must be a folder or s3://bucket/prefix"),
        (&["backup_to=sftp://host/x"], "must be a folder or s3://bucket/prefix"),
        (&["backup_recipient=age1x"], "is not an age recipient"),
        (&["backup_with_key=true"], "set backup_recipient"),
        (&["backup_check=often"], "backup_check: expected an interval"),
        (&["backup_check=7 days", &format!("backup_recipient={RECIPIENT}")], "only be checked with backup_identity"),
    ] {
        let mut arguments = vec!["account", "create", "A", "--set", "backup_to=x"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let done = kantoor(&db, &arguments);
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success() && words.contains(why), "{settings:?}: {words}");
    }
}

/// Makes the database look as if the last migration were missing. Applying it again fails, after the copy.
pub fn forget_last(db: &Db, number: u32) {
    execute(db, &format!("DELETE FROM schema_migrations WHERE number = {number}"));
}

/// Runs a statement on a database that no server uses.
pub fn execute(db: &Db, sql: &str) {
    match db.url.as_str() {
        "" => rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap().execute_batch(sql).unwrap(),
        url => crate::support::execute(url, sql),
    }
}

fn a_database_is_copied_before_it_is_migrated(db: Db) {
    kantoor::registry::install();
    let last = engine::migrations::all().last().unwrap().number;
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let folder = db.data.join("backups");
    assert!(names(&folder).is_empty(), "a new database has nothing to lose");
    forget_last(&db, last);
    kantoor(&db, &["migrate"]);
    let copies = names(&folder);
    let end = format!("-schema-{}-to-{last}.{}", last - 1, if db.url.is_empty() { "db" } else { "dump" });
    assert!(copies.len() == 1 && copies[0].starts_with("before-migration-") && copies[0].ends_with(&end), "{copies:?}");
    for (year, schema) in (2000..2005).zip(1..) {
        let name = format!("before-migration-{year}0101T000000Z-schema-{schema}-to-{last}.db");
        std::fs::write(folder.join(name), "x").unwrap();
    }
    forget_last(&db, last);
    kantoor(&db, &["migrate", "--set", "backup_before_migration=skip"]);
    assert_eq!(names(&folder).len(), 6, "none is made");
    // The time in the name has seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    forget_last(&db, last);
    kantoor(&db, &["migrate"]);
    let first = copies;
    let copies = names(&folder);
    assert!(copies.len() == 3 && copies[0].contains("-2003") && copies[1].contains("-2004"), "{copies:?}");
    assert!(copies[2].ends_with(&end) && copies[2] != first[0], "the newest of this schema stays: {copies:?}");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    forget_last(&db, last);
    kantoor(&db, &["migrate"]);
    let again = names(&folder);
    assert!(again[..2] == copies[..2] && again.len() == 3, "it replaced its own: {again:?}");
    // One that was killed leaves nothing for long.
    let left = folder.join("before-migration-20000101T000000Z-1.unfinished");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("kantoor.db"), "x").unwrap();
    // The second migration fails: its tables are there.
    execute(&db, "DELETE FROM schema_migrations WHERE number > 1");
    let done = kantoor(&db, &["migrate"]);
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    let (_, copy) = words.trim_end().split_once("the database as it was before the migration is in ").unwrap();
    assert!(!done.status.success() && copy.contains("-schema-1-to-") && std::fs::metadata(copy).is_ok(), "{words}");
    assert!(words.contains("migration 2 (") && words.lines().count() == 1, "{words}");
    assert!(names(&folder).iter().all(|name| !name.ends_with(".unfinished")), "{:?}", names(&folder));
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
    let done = kantoor(&db, &["migrate", "--set", "backup_before_migration=require"]);
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && words.contains("is not migrated"), "{words}");
}
