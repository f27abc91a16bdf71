//! The command: its options, undoing, the exit code, and the owner of what it stores.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;

use crate::cli::{complained, kantoor, said};
use crate::on_both;
use crate::support::Db;

on_both![
    options_say_how_the_file_is_written,
    failed_lines_are_an_exit_code_and_an_import_is_undone,
    the_fields_of_a_resource_are_listed,
    an_export_that_cannot_be_written_says_why,
    what_root_stores_belongs_to_the_service,
];

fn account(db: &Db) -> String {
    let made = kantoor(db, &["account", "create", "A", "--json"]);
    let made: Value = serde_json::from_str(&said(&made)).unwrap();
    made["account"]["id"].as_str().unwrap().to_string()
}

fn options_say_how_the_file_is_written(db: Db) {
    let account = account(&db);
    let file = db.folder.path().join("x.csv");
    std::fs::write(&file, b"title|deadline|description\nCall|01/02/2026|Caf\xe9\n").unwrap();
    let import = ["import", "--account", &account, "tasks", file.to_str().unwrap()];
    let options = ["--separator", "bar", "--date-order", "month_first", "--encoding", "windows-1252"];
    let shown = said(&kantoor(&db, &[&import[..], &options, &["--decimal-sign", "comma"]].concat()));
    assert!(shown.contains("windows-1252, with the separator bar, the decimal comma and dates month first"), "{shown}");
    let wrong = kantoor(&db, &[&import[..], &["--separator", "dot"]].concat());
    assert!(complained(&wrong).contains("semicolon"), "{wrong:?}");
    let wrong = kantoor(&db, &[&import[..], &["--pdfs", file.to_str().unwrap()]].concat());
    assert!(complained(&wrong).contains("--pdfs: must be a zip file"), "{wrong:?}");
}

fn failed_lines_are_an_exit_code_and_an_import_is_undone(db: Db) {
    let account = account(&db);
    let file = db.folder.path().join("x.csv");
    std::fs::write(&file, "Naam;Prijs\nHosting;12,50\nDomein;x\n").unwrap();
    let done = kantoor(&db, &["import", "--account", &account, "products", file.to_str().unwrap(), "--run"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert_eq!(complained(&done), "kantoor: 1 line failed; the others were imported\n");
    let shown = said(&done);
    let id = shown.lines().find_map(|line| line.strip_prefix("Import ")?.split(':').next()).unwrap();
    let undone = kantoor(&db, &["import", "--account", &account, "--undo", id]);
    assert!(undone.status.success() && said(&undone).contains("1 record removed"), "{undone:?}");
    let again = kantoor(&db, &["import", "--account", &account, "--undo", "none"]);
    assert!(complained(&again).contains("import"), "{again:?}");
    let verified = kantoor(&db, &["verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
}

fn the_fields_of_a_resource_are_listed(db: Db) {
    account(&db);
    let listed = said(&kantoor(&db, &["import", "--fields", "invoices"]));
    for field in ["total_excl_vat ", "client.external_id ", "paid_at ", "open_amount ", "pdf "] {
        assert!(listed.lines().any(|line| line.starts_with(field)), "{field}: {listed}");
    }
    assert!(complained(&kantoor(&db, &["import", "--fields", "invoice"])).contains("invoices"));
}

fn an_export_that_cannot_be_written_says_why(db: Db) {
    let account = account(&db);
    let file = db.folder.path().join("x.csv");
    let export = |path: &Path| kantoor(&db, &["export", "--account", &account, "products", path.to_str().unwrap()]);
    assert!(export(&file).status.success());
    let before = std::fs::read(&file).unwrap();
    let again = complained(&export(&file));
    assert!(again.contains("the file exists already; choose another name") && !again.contains("os error"), "{again}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let nowhere = complained(&export(&db.folder.path().join("none/x.csv")));
    assert!(nowhere.contains("its folder does not exist"), "{nowhere}");
    let url = complained(&export(Path::new("sftp://host/x.csv")));
    assert!(url.contains("not to a URL"), "{url}");
}

fn own(path: &Path, owner: u32) {
    std::os::unix::fs::chown(path, Some(owner), Some(owner)).unwrap();
    for entry in std::fs::read_dir(path).into_iter().flatten() {
        own(&entry.unwrap().path(), owner);
    }
}

fn owners(path: &Path, found: &mut Vec<(String, u32)>) {
    found.push((path.display().to_string(), path.metadata().unwrap().uid()));
    for entry in std::fs::read_dir(path).into_iter().flatten() {
        owners(&entry.unwrap().path(), found);
    }
}

fn what_root_stores_belongs_to_the_service(db: Db) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can change owners");
        return;
    }
    const SERVICE: u32 = 4321;
    let account = account(&db);
    let file = db.folder.path().join("x.csv");
    std::fs::write(&file, "name\nHosting\n").unwrap();
    own(db.folder.path(), SERVICE);
    let done = kantoor(&db, &["import", "--account", &account, "products", file.to_str().unwrap(), "--run"]);
    assert!(done.status.success(), "{done:?}");
    let mut found = Vec::new();
    owners(&db.data, &mut found);
    assert!(found.iter().any(|(path, _)| path.contains(&format!("files/{account}/"))), "{found:?}");
    assert!(found.iter().all(|(_, owner)| *owner == SERVICE), "{found:?}");
    let backup = db.folder.path().join("b.kantoor");
    assert!(kantoor(&db, &["backup", backup.to_str().unwrap(), "--with-key"]).status.success());
    let restored = crate::backups::empty_like(&db);
    std::fs::create_dir_all(&restored.data).unwrap();
    own(restored.folder.path(), SERVICE);
    let done = kantoor(&restored, &["restore", backup.to_str().unwrap()]);
    assert!(done.status.success(), "{done:?}");
    let mut found = Vec::new();
    owners(&restored.data, &mut found);
    assert!(found.len() > 2 && found.iter().all(|(_, owner)| *owner == SERVICE), "{found:?}");
}
