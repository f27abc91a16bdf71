//! A backup proves who made it, and a restore lets nobody in who was signed in before.

use std::fs::File;
use std::path::Path;

use archive::{Recipients, Writer};
use serde_json::{Value, json};

use super::empty_like;
use super::sentences::describe;
use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::people::{Browser, PASSWORD, commands, token};
use crate::server::Binary;
use crate::support::Db;

on_both![
    a_backup_proves_who_made_it,
    what_was_altered_is_said,
    only_a_key_that_was_there_before_proves_it,
    a_restore_ends_what_lets_people_in,
];

/// Packs the parts of a backup in a folder, as `kantoor backup` does.
fn pack(parts: &Path, file: &Path) {
    let mut writer = Writer::new(File::create(file).unwrap(), &Recipients::default()).unwrap();
    for name in ["backup.json", "kantoor.db", "kantoor.dump", "secret.key", "files.sha256", "backup.signature"] {
        if let Ok(bytes) = std::fs::read(parts.join(name)) {
            writer.add(name, bytes.len() as u64, 0, &bytes[..]).unwrap();
        }
    }
    writer.finish().unwrap();
}

fn a_backup_proves_who_made_it(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let parts = db.folder.path().join("parts");
    let (folder, file) = (parts.to_str().unwrap(), db.folder.path().join("b.kantoor"));
    assert!(kantoor(&db, &["backup", folder]).status.success());
    let check = |others: &[&str]| {
        pack(&parts, &file);
        // A folder and a file are the same to it.
        let both = [folder, file.to_str().unwrap()].map(|source| {
            let done = kantoor(&db, &[&["restore", "--check", source][..], others].concat());
            (done.status.success(), said(&done) + &String::from_utf8_lossy(&done.stderr))
        });
        assert_eq!(both[0].0, both[1].0, "{both:?}");
        both.into_iter().next().unwrap()
    };
    let (good, words) = check(&[]);
    assert!(good, "{words}");
    // A key that replaced it knows it, too.
    assert!(kantoor(&db, &["secrets", "rotate"]).status.success());
    assert!(check(&[]).0);

    // Somebody adds a session to the copy, and corrects the hashes.
    let (manifest, signature) = (parts.join("backup.json"), parts.join("backup.signature"));
    let copy = parts.join(if db.url.is_empty() { "kantoor.db" } else { "kantoor.dump" });
    let before = [&manifest, &copy, &signature].map(|path| std::fs::read(path).unwrap());
    if db.url.is_empty() {
        let sql = "INSERT INTO sessions (id, hash, account_id, user_id, person_id, created_at, seen_at, browser, address,
                                         via, confirmed_at) VALUES ('x', x'00', 1, 'x', 'x', 1, 1, '', '', 'password', 1)";
        rusqlite::Connection::open(&copy).unwrap().execute_batch(sql).unwrap();
    } else {
        let mut bytes = before[1].clone();
        bytes.push(0);
        std::fs::write(&copy, bytes).unwrap();
    }
    let mut told: Value = serde_json::from_slice(&before[0]).unwrap();
    describe(&mut told, &copy);
    std::fs::write(&manifest, told.to_string()).unwrap();
    for others in [&[][..], &["--trust-unsigned"]] {
        let (good, words) = check(others);
        assert!(!good && words.contains("altered after it was made"), "{words}");
    }
    std::fs::remove_file(&signature).unwrap();
    let (good, words) = check(&[]);
    assert!(!good && words.contains("it is not signed") && words.contains("--trust-unsigned"), "{words}");
    let own = empty_like(&db);
    let refused =
        kantoor(&own, &["restore", folder, "--set", &format!("secret_key_file={}/secret.key", db.data.display())]);
    assert!(complained(&refused).contains("it is not signed"), "{refused:?}");
    assert!(!own.data.join("kantoor.db").exists());

    for (path, bytes) in [&manifest, &copy, &signature].into_iter().zip(&before) {
        std::fs::write(path, bytes).unwrap();
    }
    assert!(check(&[]).0);
    // The list of contents and the counts are covered as well.
    let mut told: Value = serde_json::from_slice(&before[0]).unwrap();
    told["records"] = json!(7);
    std::fs::write(&manifest, told.to_string()).unwrap();
    assert!(check(&[]).1.contains("altered after it was made"));
}

/// The parts of an archive, with their names.
type Members = Vec<(&'static str, Vec<u8>)>;

/// What somebody does to them.
type Alter<'a> = &'a dyn Fn(&mut Members);

/// What is wrong with an archive that somebody altered is said.
fn what_was_altered_is_said(db: Db) {
    assert!(kantoor(&db, &["account", "create", "A"]).status.success());
    let (parts, file) = (db.folder.path().join("parts"), db.folder.path().join("b.kantoor"));
    assert!(kantoor(&db, &["backup", "--with-key", parts.to_str().unwrap()]).status.success());
    let copy = if db.url.is_empty() { "kantoor.db" } else { "kantoor.dump" };
    let read = |name: &str| std::fs::read(parts.join(name)).unwrap();
    let whole: Members =
        ["backup.json", copy, "secret.key", "files.sha256", "backup.signature"].map(|name| (name, read(name))).into();
    let said_of = |alter: &dyn Fn(&mut Members)| {
        let mut members = whole.clone();
        alter(&mut members);
        let mut writer = Writer::new(File::create(&file).unwrap(), &Recipients::default()).unwrap();
        for (name, bytes) in members {
            writer.add(name, bytes.len() as u64, 0, &bytes[..]).unwrap();
        }
        writer.finish().unwrap();
        complained(&kantoor(&db, &["restore", "--check", file.to_str().unwrap()]))
    };
    let twice = |place: usize| move |members: &mut Members| members.insert(place, members[place].clone());
    let own_twice = format!("it has {copy} twice");
    let cases: [(&str, Alter); 13] = [
        ("this is not a backup of Kantoor", &|members| members.swap(0, 1)),
        ("it has backup.json twice", &twice(0)),
        (&own_twice, &twice(1)),
        ("it has secret.key twice", &twice(2)),
        ("\"files.sha256\" comes after files.sha256", &twice(3)),
        ("it has backup.signature twice", &twice(4)),
        ("\"evil\\u{1b}[2J\" is no part of a backup", &|members| members.insert(2, ("evil\u{1b}[2J", Vec::new()))),
        ("its description (backup.json) is malformed", &|members| members[0].1 = b"{".to_vec()),
        ("its checksum differs", &|members| members[1].1[100] ^= 1),
        ("its size differs", &|members| members[1].1.push(0)),
        ("its signature (backup.signature) is not one", &|members| members[4].1 = b"xyz".to_vec()),
        ("the database is missing", &|members| drop(members.remove(1))),
        ("files.sha256 is missing", &|members| members.truncate(3)),
    ];
    for (expected, alter) in cases {
        let words = said_of(alter);
        assert!(words.contains(expected) && words.lines().count() == 1, "{expected}: {words}");
        assert!(expected.starts_with("this") || words.contains("the backup is damaged or incomplete"), "{words}");
    }
}

fn only_a_key_that_was_there_before_proves_it(db: Db) {
    let other = empty_like(&db);
    for one in [&db, &other] {
        assert!(kantoor(one, &["migrate"]).status.success());
        assert!(kantoor(one, &["account", "create", "A"]).status.success());
    }
    let file = db.folder.path().join("b.kantoor");
    let path = file.to_str().unwrap();
    assert!(kantoor(&other, &["backup", "--with-key", path]).status.success());
    // The backup of somebody else, in place of that of this server.
    let words = complained(&kantoor(&db, &["restore", "--check", path]));
    assert!(words.contains("it is signed with the key") && words.contains("has another one"), "{words}");
    assert!(kantoor(&db, &["restore", "--check", "--trust-unsigned", path]).status.success());
    // Where there is no key, the one in the backup shows that it is whole, and no more.
    let own = empty_like(&db);
    let restored = kantoor(&own, &["restore", path]);
    assert!(restored.status.success() && said(&restored).contains("anybody could have made it"), "{restored:?}");
}

fn a_restore_ends_what_lets_people_in(db: Db) {
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    let mut browser = Browser::new(&binary.client);
    let set_up = token(&commands::link(&binary.said()));
    let owner = json!({"token": set_up, "email": "o@a.example", "name": "O", "business": "Ster", "password": PASSWORD});
    browser.enter("/console/set-up", owner);
    browser.get("/console/v1/tasks").expect(200);
    let invited = binary.client.post("/v1/users", json!({"email": "i@a.example", "name": "I", "role": "member"}));
    let link = token(invited.expect(201).json()["meta"]["invite_url"].as_str().unwrap());
    let file = db.folder.path().join("b.kantoor");
    assert!(kantoor(&db, &["backup", "--with-key", file.to_str().unwrap()]).status.success());
    browser.get("/console/v1/tasks").expect(200);

    let own = empty_like(&db);
    let restored = kantoor(&own, &["restore", file.to_str().unwrap()]);
    assert!(said(&restored).contains("signs in again") && restored.status.success(), "{restored:?}");
    assert!(kantoor(&own, &["verify"]).status.success());
    let there = Binary::start(&own, &binary.client.key, &["--set", "workers=0"]);
    there.client.get("/v1/tasks").expect(200);
    let mut again = Browser::new(&there.client);
    let accepted = again.post("/console/accept-invite", json!({"token": link, "password": PASSWORD}));
    assert_eq!(accepted.expect(409).code(), "link_invalid");
    browser.client = there.client.clone();
    browser.get("/console/v1/tasks").expect(401);
    again.enter("/console/sign-in", json!({"email": "o@a.example", "password": PASSWORD}));
    again.get("/console/v1/tasks").expect(200);
}
