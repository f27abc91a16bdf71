//! A page that is open while its person switches accounts, or while somebody else signs in, in another tab of the browser.

use serde_json::json;

use super::{Browser, PASSWORD, account, invite, member, owner};
use crate::on_both;
use crate::support::{Client, Db, Reply, Server};

on_both![a_page_of_another_account_does_nothing, a_page_of_another_user_does_nothing,];

/// Sends what a page that was made for this user sends, with the cookie that the browser has now.
fn page(browser: &Browser, user: &str, method: &str, path: &str, body: &str) -> Reply {
    browser.send_with(method, path, &[("sec-fetch-site", "same-origin"), ("x-kantoor-user", user)], body)
}

fn user_of(browser: &Browser) -> String {
    browser.get("/console/v1/me").expect(200).data()["user"]["id"].as_str().unwrap().to_string()
}

fn accepts(client: &Client, email: &str) {
    let (_, link) = invite(client, email, "owner");
    Browser::new(client).enter("/console/accept-invite", json!({"token": link, "password": PASSWORD}));
}

fn a_page_of_another_account_does_nothing(db: Db) {
    let server = Server::start(db);
    let (client, other) = (server.client(), server.client());
    let mut browser = owner(&server, &client, "olga@a.example");
    accepts(&other, "olga@a.example");
    let user = user_of(&browser);
    let tea = json!({"name": "Tea"}).to_string();
    let product = page(&browser, &user, "POST", "/console/v1/products", &tea).expect(201).id();
    let elsewhere = other.post("/v1/products", json!({"name": "Coffee"})).expect(201).id();

    let (here, there) = (account(&server, &client).uid, account(&server, &other).uid);
    browser.enter("/console/account", json!({"account_id": there}));
    let stream = format!("/console/v1/events/stream?data=0&for_user={user}");
    let (mine, theirs) = (format!("/console/v1/products/{product}"), format!("/console/v1/products/{elsewhere}"));
    for (method, path, body) in [
        ("GET", "/console/v1/products", ""),
        ("GET", "/console/v1/me", ""),
        ("GET", stream.as_str(), ""),
        ("POST", "/console/v1/products", tea.as_str()),
        ("PATCH", "/console/v1/settings", r#"{"payment_term": 30}"#),
        ("PATCH", mine.as_str(), r#"{"name": "Mint tea"}"#),
        ("DELETE", theirs.as_str(), ""),
        ("GET", "/console/v1/nowhere", ""),
        ("GET", "/console/factors", ""),
        ("POST", "/console/factors/app", "{}"),
        ("POST", "/console/confirm", r#"{"password": "correct horse battery"}"#),
        ("POST", "/console/password", r#"{"current_password": "correct horse battery", "password": "staple"}"#),
    ] {
        assert_eq!(page(&browser, &user, method, path, body).expect(409).code(), "user_changed", "{method} {path}");
    }
    // The stream says it in its address, since no script chooses its headers.
    assert_eq!(browser.get(&stream).expect(409).code(), "user_changed");
    assert_eq!(page(&browser, &user, "HEAD", "/console/v1/products", "").status, 409);
    let names = |client: &Client| client.get("/v1/products").data()[0]["name"].clone();
    assert_eq!((names(&client), names(&other)), (json!("Tea"), json!("Coffee")));
    assert_eq!(other.get("/v1/products").data().as_array().unwrap().len(), 1);
    // What says nothing about its page goes on as before.
    browser.get(&format!("/console/v1/products/{elsewhere}")).expect(200);

    // The way back is open to the page, and then it goes on where it was.
    let back = page(&browser, &user, "POST", "/console/account", &json!({"account_id": here}).to_string()).expect(200);
    browser.take_cookie(&back);
    page(&browser, &user, "PATCH", &mine, r#"{"name": "Mint tea"}"#).expect(200);
    assert_eq!(names(&client), "Mint tea");
    let headers = [("sec-fetch-site", "same-origin"), ("prefer", "handling=strict")];
    browser.send_with("HEAD", &stream, &headers, "").expect(200);
    browser.send_with("GET", &format!("/console/v1/products?for_user={user}&per_page=1"), &headers, "").expect(200);
    // A key has no page.
    client.send("GET", "/v1/products", &[("x-kantoor-user", "somebody")], "").expect(200);
    page(&browser, "somebody", "POST", "/console/sign-out", "").expect(204);
}

fn a_page_of_another_user_does_nothing(db: Db) {
    let server = Server::start(db);
    let client = server.client();
    let olga = owner(&server, &client, "olga@a.example");
    let (_, ina) = member(&client, "ina@a.example", "member");
    let user = user_of(&olga);
    let opened = ina.send_with("GET", "/", &[("accept", "text/html"), ("sec-fetch-site", "none")], "").expect(200);
    assert!(opened.text.contains(&format!("data-user=\"{}\"", user_of(&ina))), "{}", opened.text);
    let tea = json!({"name": "Tea"}).to_string();
    assert_eq!(page(&ina, &user, "POST", "/console/v1/products", &tea).expect(409).code(), "user_changed");
    page(&olga, &user, "POST", "/console/v1/products", &tea).expect(201);
    // A session that has ended comes first.
    assert_eq!(page(&Browser::new(&client), &user, "GET", "/console/v1/products", "").status, 401);
}
