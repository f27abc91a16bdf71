//! `kantoor verify`: a healthy database passes, and each kind of damage is reported.

use std::path::{Path, PathBuf};

use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Db, execute};

/// Runs statements directly on the database.
pub fn spoil(db: &Db, sql: &str) {
    if db.url.is_empty() {
        rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap().execute_batch(sql).unwrap();
    } else {
        execute(&db.url, sql);
    }
}

/// Returns the output of verify, and whether it succeeded.
fn verify(db: &Db) -> (bool, String) {
    let done = kantoor(db, &["verify"]);
    (done.status.success(), said(&done) + &String::from_utf8_lossy(&done.stderr))
}

/// Returns the file below `folder` with this content.
fn holding(folder: &Path, content: &[u8]) -> PathBuf {
    let below = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let mut files = below.flat_map(|path| std::fs::read_dir(path).unwrap().flatten().map(|entry| entry.path()));
    files.find(|path| std::fs::read(path).unwrap() == content).unwrap()
}

const DAMAGE: &[(&str, &[&str])] = &[
    (
        "DELETE FROM clients WHERE id = (SELECT min(client_id) FROM deals WHERE client_id <> '')",
        &[
            "of clients, which does not exist",
            "The stored count of clients is 12, but there are 11",
            "but no such record in clients",
        ],
    ),
    ("UPDATE record_counts SET total = total + 1 WHERE kind = 'task'", &["The stored count of tasks is"]),
    (
        "UPDATE search_texts SET folded = 'other' WHERE number = (SELECT min(number) FROM search_texts WHERE kind = 'product')",
        &["Its search text does not match its fields"],
    ),
    (
        "DELETE FROM search_texts WHERE number = (SELECT max(number) FROM search_texts WHERE kind = 'product')",
        &["It has no search text"],
    ),
    (
        "UPDATE invoices SET total_incl_vat = total_incl_vat + 100 WHERE id = (SELECT min(id) FROM invoices)",
        &["total_incl_vat is"],
    ),
    (
        "UPDATE invoices SET paid_amount = paid_amount + 1 WHERE id = (SELECT max(id) FROM invoices)",
        &["paid_amount is"],
    ),
    ("UPDATE invoices SET open_amount = 1 WHERE id = (SELECT min(id) FROM invoices)", &["open_amount is 0.01"]),
    (
        "UPDATE revenue_months SET vat = vat + 1 WHERE month = (SELECT min(month) FROM revenue_months)",
        &["but the invoices add up to"],
    ),
    (
        "UPDATE payments SET amount = amount + 1 WHERE id = (SELECT min(id) FROM payments WHERE status = 'paid')",
        &["but its payments add up to"],
    ),
    (
        "UPDATE invoices SET paid_at = 1 WHERE id = (SELECT min(id) FROM invoices WHERE payment_status = 'overdue')",
        &["but its payment_status is 'overdue'"],
    ),
    (
        "UPDATE quotes SET rows = replace(rows, '\"net\":', '\"net\":1') WHERE id = (SELECT min(id) FROM quotes)",
        &["The total of row 0 is"],
    ),
    (
        "UPDATE quotes SET number = 'Q-lost' WHERE id = (SELECT min(id) FROM quotes WHERE number LIKE 'Q2%')",
        &["but no record has it"],
    ),
    (
        "UPDATE subscription_periods SET invoice_id = 'x' WHERE period_start = (SELECT min(period_start) FROM subscription_periods)",
        &["It is for the period of"],
    ),
    (
        "UPDATE subscriptions SET total_excl_vat = 1 WHERE id = (SELECT min(id) FROM subscriptions)",
        &["do not match its lines"],
    ),
    (
        "UPDATE tasks SET status = 'perhaps' WHERE id = (SELECT min(id) FROM tasks)",
        &["Column status cannot be read: it is not one of: "],
    ),
    (
        "UPDATE deliveries SET status = 'perhaps' WHERE id = (SELECT max(id) FROM deliveries)",
        &["Column status cannot be read: it is not one of: queued"],
    ),
    ("UPDATE deliveries SET mail_id = 'x' WHERE id = (SELECT min(id) FROM deliveries)", &["The mail that it delivers"]),
    ("UPDATE quota_usage SET value = value + 1 WHERE name = 'file_bytes'", &["The stored total size of the files"]),
    ("UPDATE log SET data = data || ' ' WHERE seq = 5", &["BROKEN at line 5"]),
];

on_both![reports_every_kind_of_damage, reports_differences_from_the_log_and_number_gaps, one_account_can_be_checked,];

fn reports_every_kind_of_damage(db: Db) {
    let binary = Binary::start(&db, "", &["--demo", "--set", "workers=0"]);
    let client = &binary.client;
    for content in ["kept", "to be cut", "to be flipped", "to go missing"] {
        client.upload("a.txt", content.as_bytes()).expect(201);
    }
    // Numbers set by callers leave no gap, and neither does a deleted draft with such a number.
    let own = |number: &str| {
        client.post("/v1/workorders", serde_json::json!({"title": "x", "number": number})).expect(201).id()
    };
    let listed = client.get("/v1/workorders?per_page=100").data();
    let numbers: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|one| one["number"].as_str()).collect();
    let year = numbers.iter().find_map(|number| number.strip_prefix('W')?.split('-').next()).unwrap();
    let count = numbers.iter().filter(|number| number.starts_with(&format!("W{year}-"))).count();
    let passed = own(&format!("W{year}-{:04}", count + 1));
    own(&format!("W{year}-9000"));
    let next = client.post("/v1/workorders", serde_json::json!({"title": "y", "invoice_date": format!("{year}-06-01"), "due_date": format!("{year}-07-01"), "generation_mode": "final"}));
    assert_eq!(next.expect(201).data()["number"], format!("W{year}-{:04}", count + 2));
    client.delete(&format!("/v1/workorders/{passed}")).expect(204);
    drop(binary);
    let (sound, words) = verify(&db);
    assert!(sound && words.contains("no problems"), "{words}");
    assert!(words.contains("  intact: "), "{words}");

    for (sql, _) in DAMAGE {
        spoil(&db, sql);
    }
    let files = db.data.join("files");
    let flipped = holding(&files, b"to be flipped");
    std::fs::write(holding(&files, b"to be cut"), b"to be").unwrap();
    std::fs::write(&flipped, b"to be fliqped").unwrap();
    std::fs::remove_file(holding(&files, b"to go missing")).unwrap();
    std::fs::write(flipped.with_file_name("stray"), b"?").unwrap();
    let (sound, words) = verify(&db);
    assert!(!sound, "{words}");
    for expected in DAMAGE.iter().flat_map(|(_, expected)| *expected) {
        assert!(words.contains(expected), "no '{expected}' in\n{words}");
    }
    for expected in
        ["has 5 bytes instead of 9", "its SHA-256 differs", "is missing", "stray  PROBLEM: No file has this content"]
    {
        assert!(words.contains(expected), "no '{expected}' in\n{words}");
    }
    assert!(words.contains(" problems."), "{words}");
}

fn reports_differences_from_the_log_and_number_gaps(db: Db) {
    let binary = Binary::start(&db, "", &["--demo", "--set", "workers=0"]);
    let client = &binary.client;
    let post = |path: &str, body: serde_json::Value| client.post(path, body).expect(201);
    let rows = serde_json::json!([{"name": "x", "quantity": 1, "unit_price": 10}]);
    let dates = serde_json::json!({"title": "x", "rows": rows, "invoice_date": "2031-01-01", "due_date": "2031-02-01"});
    let draft = post("/v1/invoices", dates.clone()).id();
    client.act(&format!("/v1/invoices/{draft}/finalize")).expect(200);
    let mut paid = dates.clone();
    (paid["generation_mode"], paid["payment_status"]) = ("final".into(), "paid".into());
    post("/v1/invoices", paid);
    let ticket =
        post("/v1/tickets", serde_json::json!({"subject": "x"})).data()["number"].as_str().unwrap().to_string();
    // Events without a change, and events fired by callers, do not count as changes of a record.
    let product = post("/v1/products", serde_json::json!({"name": "Kept"})).id();
    let fired = serde_json::json!({"event": "product.seen", "entity_type": "product", "data": {"id": product, "name": "Other"}});
    client.post("/v1/automation/trigger", fired).expect(200);
    drop(binary);
    let (sound, words) = verify(&db);
    assert!(sound && words.contains("no problems") && !words.contains("NOTE"), "{words}");

    let year = 2031;
    for sql in [
        "UPDATE products SET price = price + 1 WHERE name = 'Kept'",
        "UPDATE clients SET city = 'Elsewhere' WHERE id = (SELECT min(id) FROM clients)",
        "UPDATE deals SET version = version + 1 WHERE id = (SELECT min(id) FROM deals)",
        "UPDATE counters SET value = 0 WHERE name = 'invoice 2031'",
        "UPDATE counters SET value = value - 1 WHERE name = 'ticket'",
        "UPDATE invoices SET paid_at = 0 WHERE payment_status = 'paid' AND number LIKE 'F2031%'",
    ] {
        spoil(&db, sql);
    }
    let (sound, words) = verify(&db);
    assert!(!sound, "{words}");
    for expected in [
        "price is ",
        "city is \"Elsewhere\", but the last line of the log says ",
        "version is ",
        &format!("The counter is at 0, but F{year}-0001 was assigned"),
        &format!("but {ticket} was assigned"),
        "paid_at is null, but the last line of the log says ",
    ] {
        assert!(words.contains(expected), "no '{expected}' in\n{words}");
    }
    assert!(words.contains("): 6 problems."), "{words}");
}

fn one_account_can_be_checked(db: Db) {
    let made = |name: &str| -> serde_json::Value {
        serde_json::from_str(&said(&kantoor(&db, &["account", "create", name, "--json"]))).unwrap()
    };
    let (first, second) = (made("A"), made("B"));
    spoil(&db, "UPDATE record_counts SET total = 9 WHERE kind = 'tax_rate' AND account_id = 2");
    let check = |account: &serde_json::Value| {
        kantoor(&db, &["verify", "--account", account["account"]["id"].as_str().unwrap()])
    };
    assert!(check(&first).status.success());
    let second = check(&second);
    assert!(
        !second.status.success() && said(&second).contains("The stored count of tax_rates is 9"),
        "{}",
        said(&second)
    );
}

#[test]
fn detects_an_overwritten_page() {
    let db = Db::sqlite();
    assert!(kantoor(&db, &["demo"]).status.success());
    let path = db.data.join("kantoor.db");
    let beside = rusqlite::Connection::open(&path).unwrap();
    beside.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let page: i64 = beside.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    let page = usize::try_from(page).unwrap();
    drop(beside);
    let whole = std::fs::read(&path).unwrap();
    for place in [5, whole.len() / page / 2, whole.len() / page - 3] {
        let mut bytes = whole.clone();
        bytes[place * page..place * page + 2000].fill(0x5a);
        std::fs::write(&path, bytes).unwrap();
        let (sound, words) = verify(&db);
        assert!(!sound, "page {place}: {words}");
    }
    std::fs::write(&path, &whole).unwrap();
    assert!(verify(&db).0, "{}", verify(&db).1);
}

#[test]
fn detects_a_copy_without_its_wal() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &["--set", "workers=0"]);
    binary.client.upload("a.txt", b"in the WAL").expect(201);
    let copy = |names: &[&str]| {
        let own = Db::sqlite();
        for name in names.iter().chain(&["secret.key"]) {
            std::fs::copy(db.data.join(name), own.data.join(name)).unwrap();
        }
        let files = holding(&db.data.join("files"), b"in the WAL");
        let target = own.data.join("files").join(files.parent().unwrap().file_name().unwrap());
        std::fs::create_dir_all(&target).unwrap();
        std::fs::copy(&files, target.join(files.file_name().unwrap())).unwrap();
        own
    };
    let (sound, words) = verify(&copy(&["kantoor.db", "kantoor.db-wal"]));
    assert!(sound, "{words}");
    let beside = rusqlite::Connection::open(db.data.join("kantoor.db")).unwrap();
    beside.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    binary.client.upload("b.txt", b"and this").expect(201);
    let lost = copy(&["kantoor.db", "kantoor.db-shm"]);
    let (sound, words) = verify(&lost);
    assert!(!sound && words.contains("Its WAL is missing"), "{words}");
    let later = copy(&["kantoor.db"]);
    let newer = holding(&db.data.join("files"), b"and this");
    let place = later.data.join("files").join(newer.parent().unwrap().file_name().unwrap());
    std::fs::copy(&newer, place.join(newer.file_name().unwrap())).unwrap();
    let (sound, words) = verify(&later);
    assert!(!sound && words.contains("the database is older than the stored contents"), "{words}");
}

#[test]
fn verify_creates_nothing() {
    let db = Db::sqlite().emptied();
    let (sound, words) = verify(&db);
    assert!(!sound && words.contains("contains no data of Kantoor"), "{words}");
    assert!(!db.data.join("kantoor.db").exists());
}
