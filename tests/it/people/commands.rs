//! `kantoor user`.

use serde_json::{Value, json};

use super::{Browser, PASSWORD, token};
use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::Db;

on_both![people_on_the_command_line];

/// Returns the link in the output of a command.
pub fn link(text: &str) -> String {
    text.split_whitespace().find(|word| word.starts_with("http://") && word.len() > 80).unwrap().to_string()
}

fn people_on_the_command_line(db: Db) {
    let binary = Binary::start(&db, "", &[]);
    // The first start prints a link beside the key.
    let first = link(&binary.said());
    assert!(first.contains("/set-up/"), "{first}");
    let mut browser = Browser::new(&binary.client);
    let mut owner = json!({"token": token(&first), "email": "olga@a.example", "name": "Olga", "password": PASSWORD});
    for business in [Value::Null, json!(""), json!("  ")] {
        if !business.is_null() {
            owner["business"] = business;
        }
        let refused = browser.post("/console/set-up", owner.clone()).expect(422);
        assert_eq!(refused.faults(), ["business: required"], "the account has no name yet");
    }
    owner["business"] = json!("Ster");
    browser.enter("/console/set-up", owner);
    browser.get("/console/v1/products").expect(200);

    let user = |arguments: &[&str]| kantoor(&db, &[&["user"], arguments].concat());
    let invited = said(&user(&["create", "--email", "ina@a.example", "--name", "Ina", "--role", "reader"]));
    assert!(invited.starts_with("Invited ina@a.example."), "{invited}");
    let mut reader = Browser::new(&binary.client);
    reader.enter("/console/accept-invite", json!({"token": token(&link(&invited)), "password": PASSWORD}));
    let listed: Value = serde_json::from_str(&said(&user(&["list", "--json"]))).unwrap();
    let rows: Vec<_> =
        listed.as_array().unwrap().iter().map(|row| (&row["email"], &row["role"], &row["status"])).collect();
    assert_eq!(
        rows,
        [
            (&json!("olga@a.example"), &json!("owner"), &json!("active")),
            (&json!("ina@a.example"), &json!("reader"), &json!("active"))
        ]
    );
    assert!(said(&user(&["list"])).contains("ina@a.example  reader  active  Ina"));
    let text = said(&user(&["create", "--owner"]));
    assert!(link(&text).contains("/set-up/"));
    // The command does not know where the server listens.
    assert!(text.contains("public_url is empty") && text.contains("replace 127.0.0.1:8080 in the link"), "{text}");
    let text = said(&user(&["create", "--owner", "--set", "public_url=https://kantoor.example"]));
    assert!(text.contains("\nhttps://kantoor.example/set-up/") && !text.contains("public_url"), "{text}");
    let text = said(&user(&["reset", "ina@a.example", "--set", "listen=127.0.0.1:9123"]));
    assert!(text.contains("\nhttp://127.0.0.1:9123/reset/") && text.contains("replace 127.0.0.1:9123"), "{text}");
    // No browser opens what stands for all addresses of the machine.
    for listen in ["listen=0.0.0.0:9123", "listen=[::]:9123"] {
        let text = said(&user(&["reset", "ina@a.example", "--set", listen]));
        assert!(text.contains("\nhttp://localhost:9123/reset/") && text.contains("replace localhost:9123"), "{text}");
    }
    let reset = link(&said(&user(&["reset", "ina@a.example"])));
    assert!(reset.contains("/reset/"), "{reset}");
    reader.enter("/console/reset", json!({"token": token(&reset), "password": "battery staple horse"}));
    assert_eq!(said(&user(&["end-sessions", "INA@a.example"])).trim(), "Ended 1 session.");
    std::thread::sleep(std::time::Duration::from_millis(1050));
    reader.get("/console/v1/products").expect(401);
    browser.get("/console/v1/products").expect(200);

    let wrong = |arguments: &[&str]| String::from_utf8(user(arguments).stderr).unwrap();
    assert!(wrong(&["reset", "x@a.example"]).contains("nobody has the e-mail address x@a.example"));
    assert!(wrong(&["create", "--email", "x"]).contains("--email x: "));
    assert!(wrong(&["create", "--email", "x@a.example", "--role", "boss"]).contains("expected one of owner, member"));
    assert!(wrong(&["create", "--email", "ina@a.example"]).contains("nother user has the email"));
    assert!(wrong(&["create"]).contains("--email"));
    kantoor(&db, &["account", "create", "Second"]);
    assert!(wrong(&["list"]).contains("there are 2 accounts; choose one with --account"));
    assert_eq!(said(&kantoor(&db, &["verify"])).matches("  intact: ").count(), 2);
}
