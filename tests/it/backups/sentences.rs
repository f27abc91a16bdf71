//! What an operator reads when a backup, a restore or a migration cannot be done: one sentence, and an exit code.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::archives::{IDENTITY, RECIPIENT};
use super::empty_like;
use super::scheduled::{execute, forget_last};
use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::support::Db;

on_both![
    a_missing_pg_dump_is_named,
    wrong_targets_and_keys_are_named,
    a_place_that_is_none_becomes_no_folder,
    a_folder_that_is_missing_is_not_created,
    a_newer_schema_needs_the_newer_program,
    a_restore_asks_the_database_for_its_schema,
    an_interrupted_restore_is_not_a_new_company,
    a_database_that_is_being_filled_is_refused,
    an_encrypted_backup_has_a_recipient,
    a_key_in_a_backup_is_kept_beside_another,
    the_key_of_an_earlier_schema_is_kept_too,
    a_check_removes_what_a_killed_one_left,
];

fn a_check_removes_what_a_killed_one_left(db: Db) {
    if db.url.is_empty() {
        return;
    }
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let file = db.folder.path().join("b.kantoor");
    assert!(kantoor(&db, &["backup", file.to_str().unwrap()]).status.success());
    let now = engine::clock::Clock::System.now().0;
    // Beside the data of other tests: the number of the process makes it unique.
    let left = format!("kantoor_check_{}_{}", now - 3_600_000, std::process::id());
    let used = format!("kantoor_check_{}_{}", now - 3_600_001, std::process::id());
    for name in [&left, &used] {
        crate::support::execute(&db.url, &format!("CREATE DATABASE {name}"));
    }
    let mut client = postgres::Client::connect(&db.url, postgres::NoTls).unwrap();
    let mut config: postgres::Config = db.url.parse().unwrap();
    let user = config.dbname(&used).connect(postgres::NoTls).unwrap();
    let checked = kantoor(&db, &["restore", "--check", file.to_str().unwrap()]);
    assert!(checked.status.success(), "{checked:?}");
    let sql = "SELECT count(*) FROM pg_database WHERE datname = $1";
    let mut count = |name: &str| client.query_one(sql, &[&name]).unwrap().get::<_, i64>(0);
    assert_eq!((count(&left), count(&used)), (0, 1));
    drop(user);
    crate::support::execute(&db.url, &format!("DROP DATABASE IF EXISTS {used} WITH (FORCE)"));
}

fn an_interrupted_restore_is_not_a_new_company(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let file = db.folder.path().join("b.kantoor");
    assert!(kantoor(&db, &["backup", file.to_str().unwrap(), "--with-key"]).status.success());
    let own = empty_like(&db);
    let left = own.data.join("restore-1.unfinished");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("lock"), "").unwrap();
    for arguments in [&["serve"][..], &["account", "create", "B"], &["verify"], &["migrate"]] {
        let words = complained(&kantoor(&own, arguments));
        assert!(words.contains("was interrupted") && words.contains("kantoor restore"), "{arguments:?}: {words}");
    }
    assert!(said(&kantoor(&own, &["doctor"])).contains("was interrupted"));
    assert!(!own.data.join("kantoor.db").exists());
    let restored = kantoor(&own, &["restore", file.to_str().unwrap()]);
    assert!(restored.status.success(), "{restored:?}");
    assert!(kantoor(&own, &["verify"]).status.success());
}

fn a_database_that_is_being_filled_is_refused(db: Db) {
    if db.url.is_empty() {
        return;
    }
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let file = db.folder.path().join("b.kantoor");
    assert!(kantoor(&db, &["backup", file.to_str().unwrap()]).status.success());
    let own = empty_like(&db);
    // The pg_restore of a restore that was killed.
    let mut config: postgres::Config = own.url.parse().unwrap();
    let left = config.application_name("pg_restore").connect(postgres::NoTls).unwrap();
    let words = complained(&kantoor(&own, &["restore", file.to_str().unwrap()]));
    assert!(words.contains("pg_restore is filling this database"), "{words}");
    drop(left);
    let again = ["restore", "--trust-unsigned", file.to_str().unwrap()];
    crate::failover::until("the end of its session", || kantoor(&own, &again).status.success());
}

fn an_encrypted_backup_has_a_recipient(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let path = |name: &str| db.folder.path().join(name).to_str().unwrap().to_string();
    let bare = kantoor(&db, &["backup", &path("b.age")]);
    assert!(complained(&bare).contains("--to age1"), "{bare:?}");
    assert_eq!(bare.status.code(), Some(2));
    let secret = complained(&kantoor(&db, &["backup", &path("b.age"), "--to", IDENTITY]));
    assert!(secret.contains("age identity") && !secret.contains(&IDENTITY[20..]), "{secret}");
    let setting = format!("backup_recipient={IDENTITY}");
    for arguments in [&["backup", &path("b.age")][..], &["account", "create", "B", "--set", "backup_to=x"]] {
        let secret = complained(&kantoor(&db, &[arguments, &["--set", &setting]].concat()));
        assert!(secret.contains("age identity") && !secret.contains(&IDENTITY[20..]), "{secret}");
    }
    let setting = format!("backup_identity={IDENTITY}");
    for arguments in
        [&["restore", &path("."), "--identity", IDENTITY][..], &["doctor", "--set", "backup_to=x"], &["config"]]
    {
        let done = kantoor(&db, &[arguments, &["--set", &setting]].concat());
        let words = format!("{}{}", said(&done), String::from_utf8_lossy(&done.stderr));
        assert!(!words.contains(&IDENTITY[20..]), "{words}");
        let expected = if arguments[0] == "config" { "(hidden)" } else { "name the file that contains it" };
        assert!(words.contains(expected), "{arguments:?}: {words}");
    }
    assert!(!Path::new(&path("b.age")).exists());
    let setting = format!("backup_recipient={RECIPIENT}");
    let run =
        |name: &str, others: &[&str]| kantoor(&db, &[&["backup", &path(name), "--set", &setting][..], others].concat());
    let done = run("b.age", &[]);
    assert!(done.status.success() && said(&done).contains("backup_recipient"), "{done:?}");
    assert!(std::fs::read(path("b.age")).unwrap().starts_with(b"age-encryption.org/v1\n"));
    assert!(complained(&run("folder", &[])).contains("--unencrypted"));
    assert!(run("folder", &["--unencrypted"]).status.success());
}

fn a_key_in_a_backup_is_kept_beside_another(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let file = db.folder.path().join("b.kantoor");
    assert!(kantoor(&db, &["backup", file.to_str().unwrap(), "--with-key"]).status.success());
    let own = empty_like(&db);
    let key = own.data.join("secret.key");
    std::fs::create_dir_all(&own.data).unwrap();
    std::fs::write(&key, format!("{}\n", "ab".repeat(32))).unwrap();
    let restored = kantoor(&own, &["restore", "--trust-unsigned", file.to_str().unwrap()]);
    assert!(restored.status.success(), "{restored:?}");
    assert!(said(&restored).contains("secret.key.restored"), "{}", said(&restored));
    assert!(std::fs::read_to_string(&key).unwrap().starts_with("abab"), "the other key stays");
    let beside = own.data.join("secret.key.restored");
    assert_eq!(beside.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!kantoor(&own, &["verify"]).status.success());
    // A restore that is tried again finds its own key there; that of another backup stays.
    let restored_beside = |text: &[u8]| {
        let own = empty_like(&db);
        std::fs::create_dir_all(&own.data).unwrap();
        std::fs::write(own.data.join("secret.key"), format!("{}\n", "ab".repeat(32))).unwrap();
        std::fs::write(own.data.join("secret.key.restored"), text).unwrap();
        (kantoor(&own, &["restore", "--trust-unsigned", file.to_str().unwrap()]), own)
    };
    let (again, _own) = restored_beside(&std::fs::read(&beside).unwrap());
    assert!(again.status.success() && said(&again).contains("secret.key.restored"), "{again:?}");
    let (refused, other) = restored_beside(b"another");
    assert!(complained(&refused).contains("move it away"), "{refused:?}");
    assert_eq!(std::fs::read(other.data.join("secret.key.restored")).unwrap(), b"another");
    // A setting is no file that another one replaces.
    let set = empty_like(&db);
    let setting = format!("secret_key={}", "ab".repeat(32));
    let restored = kantoor(&set, &["restore", "--trust-unsigned", file.to_str().unwrap(), "--set", &setting]);
    let words = said(&restored);
    assert!(words.contains("secret_key_file") && !words.contains("in place of the other"), "{restored:?}");
    assert!(set.data.join("secret.key.restored").exists());
    std::fs::rename(&beside, &key).unwrap();
    assert!(kantoor(&own, &["verify"]).status.success());
}

/// The records of an earlier schema are not checked, but its key is kept as that of any other.
fn the_key_of_an_earlier_schema_is_kept_too(db: Db) {
    kantoor::registry::install();
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let folder = db.folder.path().join("backup");
    assert!(kantoor(&db, &["backup", folder.to_str().unwrap(), "--with-key"]).status.success());
    let earlier = super::restored(&db, &folder);
    forget_last(&earlier, engine::migrations::all().last().unwrap().number);
    let copy = folder.join(if db.url.is_empty() { "kantoor.db" } else { "kantoor.dump" });
    if !db.url.is_empty() {
        let mut dump = Command::new("pg_dump");
        dump.args(["--format=custom", "--no-owner", "--no-privileges", "--dbname", &earlier.url, "--file"]).arg(&copy);
        let done = dump.output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    let manifest = folder.join("backup.json");
    let mut told: Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    describe(&mut told, &copy);
    std::fs::write(&manifest, told.to_string()).unwrap();
    // The signature is of the description as it was.
    std::fs::remove_file(folder.join("backup.signature")).unwrap();
    let own = empty_like(&db);
    std::fs::create_dir_all(&own.data).unwrap();
    std::fs::write(own.data.join("secret.key"), format!("{}\n", "ab".repeat(32))).unwrap();
    let restored = kantoor(&own, &["restore", "--trust-unsigned", folder.to_str().unwrap()]);
    assert!(restored.status.success(), "{restored:?}");
    let words = said(&restored);
    assert!(words.contains("earlier version") && words.contains("secret.key.restored"), "{words}");
    let keys = |path: &Path| -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect()
    };
    assert_eq!(keys(&own.data.join("secret.key.restored")), keys(&db.data.join("secret.key")));
}

/// Puts the hash and the size of a database into the description of its backup.
pub fn describe(told: &mut Value, copy: &Path) {
    let bytes = std::fs::read(copy).unwrap();
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    (told["database"]["sha256"], told["database"]["bytes"]) = (json!(hash), json!(bytes.len()));
}

/// A folder that another user may not read is not an empty one.
#[test]
fn another_user_is_told_so() {
    let db = Db::sqlite();
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let is_root = db.data.metadata().unwrap().uid() == 0;
    let file = db.folder.path().join("b.kantoor");
    for arguments in [&["verify"][..], &["backup", file.to_str().unwrap()], &["doctor"], &["account", "list"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.args(arguments).env("KANTOOR_DATA", &db.data).env("KANTOOR_DATABASE_URL", "").current_dir("/");
        if is_root {
            command.uid(65534);
        } else {
            std::fs::set_permissions(&db.data, std::fs::Permissions::from_mode(0o000)).unwrap();
        }
        // The program itself may be where others have no access.
        let Ok(done) = command.output() else { return };
        std::fs::set_permissions(&db.data, std::fs::Permissions::from_mode(0o700)).unwrap();
        let words = format!("{}{}", said(&done), String::from_utf8_lossy(&done.stderr));
        assert!(!done.status.success() && words.contains("cannot be read by the user"), "{arguments:?}: {words}");
        assert!(!words.contains("no data of Kantoor") && !words.contains("from your copy"), "{words}");
    }
}

fn without_programs(db: &Db, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.args(arguments).env("KANTOOR_DATABASE_URL", &db.url).env("KANTOOR_DATA", &db.data);
    command.env("PATH", db.folder.path()).output().unwrap()
}

fn a_missing_pg_dump_is_named(db: Db) {
    if db.url.is_empty() {
        return;
    }
    kantoor::registry::install();
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    for name in ["b.kantoor", "folder"] {
        let target = db.folder.path().join(name);
        let words = complained(&without_programs(&db, &["backup", target.to_str().unwrap()]));
        assert!(words.contains("pg_dump is not installed") && words.lines().count() == 1, "{words}");
        assert!(!target.exists());
    }
    forget_last(&db, engine::migrations::all().last().unwrap().number);
    // Applying the last migration again fails, after the copy.
    let migrated = without_programs(&db, &["migrate", "--set", "backup_before_migration=auto"]);
    let words = String::from_utf8_lossy(&migrated.stderr).into_owned();
    assert!(words.contains("no backup was made before the migration") && words.contains("pg_dump"), "{words}");
}

fn wrong_targets_and_keys_are_named(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let file = db.folder.path().join("b.kantoor");
    let words = complained(&kantoor(&db, &["backup", file.to_str().unwrap(), "--to", "age1foo"]));
    assert!(words.contains("'age1foo' is not an age recipient: it is incomplete or mistyped"), "{words}");
    let settings = db.folder.path().join("kantoor.toml");
    std::fs::write(&settings, "s3_endpoint = \"http://127.0.0.1:1\"\ns3_access_key = \"a\"\ns3_secret_key = \"b\"\n")
        .unwrap();
    let store = ["--config", settings.to_str().unwrap()];
    for arguments in [["backup", "s3://bucket/b.kantoor"], ["restore", "s3://bucket/b.kantoor"]] {
        let db = if arguments[0] == "restore" { &empty_like(&db) } else { &db };
        let words = complained(&kantoor(db, &[&arguments[..], &store].concat()));
        assert!(words.contains("s3://bucket/b.kantoor: the store cannot be used; check"), "{words}");
        assert_eq!(words.lines().count(), 1, "{words}");
    }
}

fn a_place_that_is_none_becomes_no_folder(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let here = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
        command.args(arguments).env("KANTOOR_DATABASE_URL", &db.url).env("KANTOOR_DATA", &db.data);
        let words = complained(&command.current_dir(here.path()).output().unwrap());
        assert!(!words.contains("hush"), "{words}");
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0, "{arguments:?} created something");
        words
    };
    for url in ["sftp://me:hush@host/x.kantoor", "S3://bucket/x.kantoor", "file:///tmp/x", "https://host/x"] {
        for command in ["backup", "restore"] {
            let words = refused(&[command, url]);
            assert!(words.contains(":// cannot be used: a backup is a file"), "{words}");
        }
        let words = refused(&["export", "--account", "x", "products", &format!("{url}.csv")]);
        assert!(!words.is_empty());
    }
    for name in ["x.zip", "x.tar.gz", "X.ZIP", "kantoor.db"] {
        assert!(refused(&["backup", name]).contains("ends in .kantoor, .tar.zst, .tzst or .age"), "{name}");
    }
    for to in ["s3://", "s3:///x", "sftp://host/x", "S3://bucket"] {
        for command in [&["serve"][..], &["config"], &["backup"], &["account", "list"]] {
            let setting = format!("backup_to={to}");
            let words = refused(&[command, &["--set", &setting]].concat());
            assert!(words.contains("backup_to: ") && words.contains("s3://bucket/prefix"), "{command:?}: {words}");
        }
        let setting = format!("files={to}");
        assert!(refused(&["verify", "--set", &setting]).contains("files: "), "{to}");
    }
    let words = refused(&["verify", "--data", "postgres://me:hush@host/x"]);
    assert!(words.contains("data: must be a folder"), "{words}");
    // A store elsewhere has no roles.
    let store = ["backup", "s3://bucket/x", "--set", "s3_endpoint=http://127.0.0.1:1"];
    for (setting, missing) in
        [("s3_region=x", "s3_access_key: is not set"), ("s3_access_key=a", "s3_secret_key: is not set")]
    {
        let words = refused(&[&store[..], &["--set", setting]].concat());
        assert!(words.contains(missing) && !words.contains("169.254"), "{words}");
    }
}

/// It may be on a disk that is not mounted: the backup would fill another one.
fn a_folder_that_is_missing_is_not_created(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let missing = db.folder.path().join("usb");
    for name in ["monday.kantoor", "monday", "old/monday.kantoor"] {
        let target = missing.join(name);
        let refused = kantoor(&db, &["backup", target.to_str().unwrap()]);
        let words = complained(&refused);
        let folder = target.parent().unwrap().display();
        let expected = format!("the folder {folder} does not exist; create it, or mount its disk");
        assert!(words.contains(&expected), "{words}");
        assert_eq!((refused.status.code(), words.lines().count()), (Some(1), 1), "{words}");
        assert!(!missing.exists());
    }
    std::fs::create_dir(&missing).unwrap();
    assert!(kantoor(&db, &["backup", missing.join("monday").to_str().unwrap()]).status.success());
}

fn a_newer_schema_needs_the_newer_program(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    execute(&db, "INSERT INTO schema_migrations (number, name) VALUES (9999, 'later')");
    let file = db.folder.path().join("b.kantoor");
    for arguments in [&["verify"][..], &["backup", file.to_str().unwrap()], &["migrate"]] {
        let words = complained(&kantoor(&db, arguments));
        assert!(words.contains("newer") && words.contains("9999"), "{words}");
        assert!(!words.contains("kantoor migrate") && words.lines().count() == 1, "{words}");
    }
    assert!(!file.exists());
}

fn a_restore_asks_the_database_for_its_schema(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let folder = db.folder.path().join("backup");
    let path = folder.to_str().unwrap();
    assert!(kantoor(&db, &["backup", path]).status.success());
    let manifest = folder.join("backup.json");
    let mut told: Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    told["schema"] = json!(3);
    std::fs::write(&manifest, told.to_string()).unwrap();
    std::fs::remove_file(folder.join("backup.signature")).unwrap();
    let checked = kantoor(&db, &["restore", "--check", "--trust-unsigned", path]);
    assert!(checked.status.success() && !said(&checked).contains("earlier version"), "{checked:?}");
    if !db.url.is_empty() {
        return;
    }
    let copy = folder.join("kantoor.db");
    let sql = "INSERT INTO schema_migrations (number, name) VALUES (9999, 'later')";
    rusqlite::Connection::open(&copy).unwrap().execute_batch(sql).unwrap();
    describe(&mut told, &copy);
    std::fs::write(&manifest, told.to_string()).unwrap();
    let own = empty_like(&db);
    let words = complained(&kantoor(&own, &["restore", "--trust-unsigned", path]));
    assert!(words.contains("newer version (schema 9999)"), "{words}");
    assert!(!own.data.join("kantoor.db").exists());
}
