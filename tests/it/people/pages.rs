//! The pages to sign in and to open links: plain forms, in two languages.

use super::{Browser, PASSWORD, invite, member, set_up_token};
use crate::on_both;
use crate::support::{Db, Reply, Server};

on_both![
    people_sign_in_with_plain_forms,
    links_that_do_not_work_say_why,
    a_server_without_mail_promises_none,
    an_invitation_waits_for_somebody_whose_session_ended,
];

pub fn submit(browser: &Browser, path: &str, fields: &[(&str, &str)]) -> Reply {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    let kind = "application/x-www-form-urlencoded";
    browser.send_with("POST", path, &[("content-type", kind), ("sec-fetch-site", "same-origin")], &form.finish())
}

/// Checks the rules of every page.
#[track_caller]
pub fn check_page(reply: &Reply) {
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(reply.header("referrer-policy"), "same-origin");
    assert_eq!(reply.header("cache-control"), "private, no-store");
    let policy = reply.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'nonce-") && policy.contains("frame-ancestors 'none'"));
    assert!(reply.text.contains("<h1>") && reply.text.contains("<title>") && !reply.text.contains("<script"));
    // Every field has its label.
    for field in reply.text.split("<input id=\"").skip(1) {
        let id = field.split('"').next().unwrap();
        assert!(reply.text.contains(&format!("<label for=\"{id}\">")), "{id} has no label");
    }
}

fn people_sign_in_with_plain_forms(db: Db) {
    let server = Server::start(db);
    let mut client = server.client();
    // Redirects are not followed, so that they can be checked.
    client.agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
    let mut browser = Browser::new(&client);
    let path = format!("/set-up/{}", set_up_token(&server, &client));
    let page = browser.get(&path).expect(200);
    check_page(&page);
    assert!(page.text.contains("Business name") && page.text.contains("value=\"Test\""), "{}", page.text);
    let dutch = browser.send_with("GET", &path, &[("accept-language", "nl-NL,nl;q=0.9,en;q=0.8")], "");
    assert!(dutch.text.contains("<html lang=\"nl\">") && dutch.text.contains("Bedrijfsnaam"));
    let fields =
        |email, password| [("business", "De Ster "), ("name", "Olga <b>"), ("email", email), ("password", password)];
    let weak = submit(&browser, &path, &fields("olga@a.example", "short")).expect(422);
    check_page(&weak);
    assert!(
        weak.text.contains("role=\"alert\"") && weak.text.contains("At least 12 characters".to_lowercase().as_str())
    );
    assert!(weak.text.contains("value=\"Olga &lt;b&gt;\""), "{}", weak.text);
    for business in ["", "  ", "De\u{202e}Ster"] {
        let filled = [("business", business), ("name", "O"), ("email", "olga@a.example"), ("password", PASSWORD)];
        let unnamed = submit(&browser, &path, &filled).expect(422);
        assert!(unnamed.text.contains("Enter the business name, on one line"), "{}", unnamed.text);
        // The browser says nothing of its own.
        let marked = "aria-describedby=\"about\" aria-invalid=\"true\" autofocus";
        assert!(unnamed.text.contains(marked) && unnamed.text.contains("novalidate"), "{}", unnamed.text);
    }
    let odd = submit(&browser, &path, &fields("olga", PASSWORD)).expect(422);
    assert!(odd.text.contains("This e-mail address is not valid."));
    let entered = submit(&browser, &path, &fields("olga@a.example", PASSWORD)).expect(303);
    browser.take_cookie(&entered);
    assert_eq!(entered.header("location"), "/");
    assert_eq!(browser.get("/sign-in").expect(303).header("location"), "/");
    // The business has its name everywhere.
    assert_eq!(client.get("/v1/account").data()["name"], "De Ster");
    assert_eq!(client.get("/v1/corporate-identities").data()[0]["name"], "De Ster");
    let used = browser.get(&path).expect(409);
    check_page(&used);
    assert!(used.text.contains("This link has been used") && used.text.contains("The account has already been set up"));

    let left = submit(&browser, "/sign-out", &[]).expect(303);
    assert!(left.header("set-cookie").starts_with("kantoor=;"));
    browser.get("/console/v1/me").expect(401);
    let ended = browser.get("/sign-in?ended&to=%2F").expect(200);
    assert!(ended.text.contains("You have been signed out. Sign in again."), "{}", ended.text);
    assert!(ended.text.contains("<span id=\"kept\" hidden>"), "only the browser knows of drafts: {}", ended.text);
    let wrong = submit(&browser, "/sign-in", &[("email", "olga@a.example"), ("password", "wrong")]).expect(401);
    check_page(&wrong);
    assert!(
        wrong.text.contains("The e-mail address or the password is wrong.")
            && wrong.text.contains("value=\"olga@a.example\"")
    );
    let entered = submit(&browser, "/sign-in", &[("email", "olga@a.example"), ("password", PASSWORD)]).expect(303);
    browser.take_cookie(&entered);
    browser.get("/console/v1/me").expect(200);
    let forged = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "cross-site")];
    browser.send_with("POST", "/sign-out", &forged, "").expect(403);
    browser.send_with("POST", "/sign-in", &forged, "email=a&password=b").expect(403);

    let (_, token) = invite(&client, "ina@a.example", "member");
    let path = format!("/invite/{token}");
    let page = browser.get(&path).expect(200);
    check_page(&page);
    // The account has the language in which it was set up, and so have those who are invited.
    assert!(page.text.contains("<html lang=\"en\">") && page.text.contains("value=\"ina@a.example\" readonly"));
    submit(&Browser::new(&client), &path, &[("password", PASSWORD)]).expect(303);
    check_page(&browser.get("/forgot").expect(200));
    let sent = submit(&browser, "/forgot", &[("email", "ina@a.example")]).expect(200);
    check_page(&sent);
    assert!(sent.text.contains("This server sends no mail"));
    for path in ["/invite/", "/invite/x/y", "/set-up", "/sign-in/x"] {
        let reply = browser.get(path);
        assert!([404, 409].contains(&reply.status), "{path}: {reply:?}");
    }
    submit(&browser, "/sign-out", &[]).expect(303);
    check_page(&Browser::new(&client).get("/sign-in").expect(200));
}

/// Opens a link in English and in Dutch.
#[track_caller]
fn dead(browser: &Browser, path: &str, english: &[&str], dutch: &[&str]) {
    for (language, words) in [("en", english), ("nl", dutch)] {
        let page = browser.send_with("GET", path, &[("accept-language", language)], "").expect(409);
        check_page(&page);
        assert!(page.text.contains(&format!("<html lang=\"{language}\">")));
        assert!(page.text.contains("href=\"/sign-in\"") && page.text.contains("href=\"/forgot\""));
        for words in words {
            assert!(page.text.contains(words), "{path}: no '{words}' in {}", page.text);
        }
    }
}

fn links_that_do_not_work_say_why(db: Db) {
    let server = Server::with(db, |config| config.public_limit_per_minute = 0);
    let client = server.client();
    let browser = Browser::new(&client);
    let expire = || server.rewrite("UPDATE one_time_tokens SET expires_at = 1 WHERE used_at = 0");
    let operator = "Whoever runs the server creates";
    // A part of a link.
    dead(
        &browser,
        "/set-up",
        &["This link is not complete", "not copied completely", "kantoor user create --owner"],
        &["Deze link is niet compleet"],
    );
    dead(
        &browser,
        "/invite/",
        &["Open the whole link from the mail, or ask for a new invitation."],
        &["vraag om een nieuwe uitnodiging"],
    );
    dead(
        &browser,
        "/reset/x/y",
        &["Open the whole link from the mail, or request a new one."],
        &["of vraag een nieuwe aan"],
    );
    dead(&browser, "/sign-in-link", &["kantoor user sign-in-link"], &["maakt een andere met deze opdracht"]);

    let set_up = format!("/set-up/{}", set_up_token(&server, &client));
    expire();
    dead(
        &browser,
        &set_up,
        &["This link has expired", "valid for a day", operator],
        &["Deze link is verlopen", "een dag geldig"],
    );
    let mut olga = super::owner(&server, &client, "olga@a.example");

    let (id, first) = invite(&client, "ina@a.example", "member");
    let invitation = format!("/invite/{first}");
    dead(
        &browser,
        &format!("/reset/{first}"),
        &["This link is not right", "exactly as you received it"],
        &["Deze link klopt niet"],
    );
    expire();
    dead(
        &browser,
        &invitation,
        &["This link has expired", "Ask the person who invited you for a new one."],
        &["zeven dagen geldig"],
    );
    server.rewrite("UPDATE one_time_tokens SET expires_at = 9999999999999");
    server.execute(&format!("UPDATE users SET status = 'suspended' WHERE id = '{id}'"));
    let suspended = submit(&browser, &invitation, &[("password", PASSWORD)]).expect(403);
    assert!(
        suspended.text.contains("Your access to ")
            && suspended.text.contains(" is suspended. Ask an owner of the account"),
        "{}",
        suspended.text
    );
    server.execute(&format!("UPDATE users SET status = 'invited' WHERE id = '{id}'"));
    browser.post("/console/accept-invite", serde_json::json!({"token": first, "password": PASSWORD})).expect(200);
    dead(
        &browser,
        &invitation,
        &["This link has been used", "already been accepted"],
        &["Deze link is al gebruikt", "al geaccepteerd"],
    );

    resets_and_sign_in_links_say_why(&server, &client, &mut olga);
}

fn resets_and_sign_in_links_say_why(server: &Server, client: &crate::support::Client, olga: &mut Browser) {
    let browser = Browser::new(client);
    let expire = || server.rewrite("UPDATE one_time_tokens SET expires_at = 1 WHERE used_at = 0");
    let operator = "Whoever runs the server creates";
    let reset = kantoor::people::operator::reset(&server.app, "olga@a.example").unwrap();
    let reset = reset[reset.find("/reset/").unwrap()..].to_string();
    expire();
    dead(&browser, &reset, &["valid for an hour. Request a new one."], &["een uur geldig. Vraag een nieuwe aan."]);
    let whole = super::token(&reset);
    for (token, words) in [
        (whole.as_str(), "This link has expired. Request another link."),
        (&whole[..20], "This link was not copied completely. Open the whole link, exactly as you received it."),
        (&"0".repeat(64), "This link is unknown, or was replaced by a newer one. Open the link in the newest mail"),
    ] {
        let body = serde_json::json!({"token": token, "password": "battery staple horse"});
        let refused = browser.post("/console/reset", body).expect(409);
        assert!(refused.text.contains(words), "{}", refused.text);
    }
    server.rewrite("UPDATE one_time_tokens SET expires_at = 9999999999999");
    olga.enter(
        "/console/reset",
        serde_json::json!({"token": super::token(&reset), "password": "battery staple horse"}),
    );
    dead(&browser, &reset, &["A new password has already been chosen"], &["al een nieuw wachtwoord gekozen"]);

    let link = kantoor::people::operator::sign_in_link(&server.app, "olga@a.example").unwrap();
    let link = link[link.find("/sign-in-link/").unwrap()..].to_string();
    submit(&Browser::new(&without_redirects(client)), &link, &[]).expect(303);
    dead(&browser, &link, &["which works once", operator], &["hij werkt één keer"]);
    let old = format!("/set-up/{}", set_up_token(server, client));
    kantoor::people::operator::set_up(&server.app, super::account(server, client)).unwrap();
    dead(
        &browser,
        &old,
        &["This link was replaced", "A newer link was created, which replaces this one."],
        &["Deze link is vervangen", "Er is een nieuwere link gemaakt"],
    );
    replaced_and_withdrawn_links_say_so(server, client, olga);
}

fn replaced_and_withdrawn_links_say_so(server: &Server, client: &crate::support::Client, olga: &mut Browser) {
    let browser = Browser::new(client);
    let (id, first) = invite(client, "iris@a.example", "member");
    let second = client.act(&format!("/v1/users/{id}/invite")).expect(200).json();
    let second = super::token(second["meta"]["invite_url"].as_str().unwrap());
    dead(
        &browser,
        &format!("/invite/{first}"),
        &["This link was replaced", "You were sent a newer invitation, which replaces this one."],
        &["Deze link is vervangen", "U hebt een nieuwere uitnodiging gekregen"],
    );
    // One that nobody issued tells nothing.
    let unknown = ["unknown or was replaced by a newer link"];
    dead(&browser, &format!("/invite/{}", "0".repeat(64)), &unknown, &["onbekend of door een nieuwere vervangen"]);
    dead(&browser, &format!("/invite/{}", &first[..40]), &["not copied completely"], &["niet volledig overgenomen"]);
    client.delete(&format!("/v1/users/{id}")).expect(204);
    for one in [&second, &first] {
        let page = browser.get(&format!("/invite/{one}")).expect(409);
        assert!(!page.text.contains("not copied completely"), "{}", page.text);
    }
    dead(
        &browser,
        &format!("/invite/{second}"),
        &["This link was withdrawn", "The invitation was withdrawn"],
        &["Deze link is ingetrokken", "De uitnodiging is ingetrokken"],
    );
    // A password that was chosen in another way.
    let reset = kantoor::people::operator::reset(&server.app, "olga@a.example").unwrap();
    let other = kantoor::people::operator::reset(&server.app, "olga@a.example").unwrap();
    let body = serde_json::json!({"token": super::token(&other), "password": "horse staple battery"});
    olga.enter("/console/reset", body);
    dead(
        &browser,
        &reset[reset.find("/reset/").unwrap()..],
        &["Another password has been chosen since"],
        &["Er is intussen een ander wachtwoord gekozen"],
    );
}

fn without_redirects(client: &crate::support::Client) -> crate::support::Client {
    let agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
    crate::support::Client { agent, ..client.clone() }
}

/// Whoever forgot a password hears whom to ask, whether or not the address is known.
fn a_server_without_mail_promises_none(db: Db) {
    let server = Server::start(db);
    server.leaves_jobs();
    let client = server.client();
    super::owner(&server, &client, "olga@a.example");
    let browser = Browser::new(&client);
    let [known, unknown] = ["olga@a.example", "nobody@a.example"].map(|email| {
        let page = submit(&browser, "/forgot", &[("email", email)]).expect(200);
        check_page(&page);
        assert!(
            page.text.contains("This server sends no mail") && page.text.contains("kantoor user reset"),
            "{}",
            page.text
        );
        page.text.split("<body>").nth(1).unwrap().to_string()
    });
    assert_eq!(known, unknown);
}

/// Accepting with a click after the session ended is no wrong password.
fn an_invitation_waits_for_somebody_whose_session_ended(db: Db) {
    let server = Server::start(db);
    let (client, other) = (without_redirects(&server.client()), server.client());
    let (_, ina) = member(&client, "ina@a.example", "member");
    let (id, token) = invite(&other, "ina@a.example", "reader");
    server.execute("UPDATE users SET language = 'en'");
    let path = format!("/invite/{token}");
    assert!(ina.get(&path).expect(200).text.contains("value=\"join\""));
    submit(&ina, "/sign-out", &[]).expect(303);
    let attempts = || {
        let count = |tx: &mut store::Tx| tx.int("SELECT count(*) FROM sign_in_attempts", &[]);
        server.app.store.read_now(count).unwrap()
    };
    let before = attempts();
    let page = submit(&ina, &path, &[("action", "join")]).expect(401).text;
    assert!(page.contains("You have been signed out. Sign in again."), "{page}");
    assert!(page.contains("type=\"password\"") && !page.contains("value=\"join\""), "{page}");
    assert_eq!(attempts(), before);
    let status = || other.get(&format!("/v1/users/{id}")).data()["status"].clone();
    assert_eq!(status(), "invited");
    submit(&ina, &path, &[("password", PASSWORD)]).expect(303);
    assert_eq!(status(), "active");
}
