//! A passkey in a real browser, with the authenticator in software that Chromium has for tests.

use serde_json::json;

use super::browser::Chromium;
use crate::people::{PASSWORD, owner};
use crate::support::{Db, Server};

/// Enters the password on the page to sign in.
#[track_caller]
fn enter_password(browser: &mut Chromium) {
    browser.fill("E-mail address", "olga@a.example");
    browser.fill("Password", PASSWORD);
    browser.press("button", "Sign in");
}

#[test]
fn somebody_adds_a_passkey_and_signs_in_with_it() {
    let server = Server::on_localhost(Db::sqlite());
    let client = server.client();
    owner(&server, &client, "olga@a.example");
    let Some(mut browser) = Chromium::start(&server.app.site.address(""), 1280, 860) else { return };
    browser.call("WebAuthn.enable", json!({}));
    // Somebody is always present, and the device recognizes them.
    let options = json!({
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true,
        "isUserVerified": true, "automaticPresenceSimulation": true,
    });
    let authenticator = browser.call("WebAuthn.addVirtualAuthenticator", json!({"options": options}));
    let credentials = |browser: &mut Chromium| {
        let own = json!({"authenticatorId": authenticator["authenticatorId"]});
        browser.call("WebAuthn.getCredentials", own)["credentials"].clone()
    };
    browser.open("/me");
    enter_password(&mut browser);
    browser.press("button", "Passkey toevoegen");
    browser.fill("Naam van dit apparaat", "Laptop");
    browser.press("button", "Inschakelen");
    browser.press("button", "Ik heb ze bewaard");
    browser.sees("Laptop");
    let made = credentials(&mut browser);
    assert_eq!((made.as_array().unwrap().len(), &made[0]["rpId"]), (1, &json!("localhost")), "{made}");
    browser.check();

    browser.press("button", "Olga Owner");
    browser.press("menuitem", "Uitloggen");
    enter_password(&mut browser);
    browser.press("button", "Inloggen met een passkey");
    browser.wait_until("location.pathname === '/' && document.querySelector('#app main h1') !== null");
    let used = credentials(&mut browser);
    assert!(used[0]["signCount"].as_i64() > made[0]["signCount"].as_i64(), "{made} {used}");
    browser.check();
    let events = server.events(&client, 0);
    let last: Vec<&str> = events.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(last, ["user.signed_in", "user.signed_out"], "{events:?}");
}
