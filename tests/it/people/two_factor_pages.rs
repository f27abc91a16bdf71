//! The pages of second factors.

use serde_json::json;

use super::factors::App;
use super::pages::{check_page, submit};
use super::{Browser, PASSWORD, owner, token};
use crate::on_both;
use crate::support::{Client, Db, Office, Server};

on_both![
    people_enrol_and_sign_in_with_plain_forms,
    pages_after_the_password_have_the_language_of_the_user,
    a_page_with_passkeys_allows_its_script,
];

/// A client that does not follow redirects, so that they can be checked.
fn strict(server: &Office) -> Client {
    let mut client = server.client();
    client.agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
    client
}

/// Returns the value of a hidden field.
pub fn hidden(page: &str, name: &str) -> String {
    let field = format!("name=\"{name}\" value=\"");
    page.split(&field).nth(1).unwrap_or_else(|| panic!("no {name} in {page}")).split('"').next().unwrap().to_string()
}

fn people_enrol_and_sign_in_with_plain_forms(db: Db) {
    let server = Server::start(db);
    let client = strict(&server);
    let mut browser = owner(&server, &client, "olga@a.example");
    server.execute("UPDATE users SET language = 'en'");
    assert_eq!(Browser::new(&client).get("/two-factor").expect(303).header("location"), "/sign-in");
    client.patch("/v1/settings", json!({"two_factor": "all"})).expect(200);
    std::thread::sleep(std::time::Duration::from_millis(1050));
    assert_eq!(browser.get("/sign-in").expect(303).header("location"), "/two-factor");
    let page = browser.get("/two-factor").expect(200);
    check_page(&page);
    assert!(page.text.contains("This account requires two-factor authentication."), "{}", page.text);
    let act = |browser: &Browser, fields: &[(&str, &str)]| submit(browser, "/two-factor", fields);
    // The password is asked again after a while.
    server.rewrite("UPDATE sessions SET confirmed_at = 1");
    assert_eq!(act(&browser, &[("action", "begin")]).expect(303).header("location"), "/two-factor");
    let page = browser.get("/two-factor").expect(200);
    check_page(&page);
    assert!(page.text.contains("we ask for your password once more"), "{}", page.text);
    let wrong = act(&browser, &[("action", "confirm"), ("password", "wrong")]).expect(403);
    check_page(&wrong);
    assert!(wrong.text.contains("The password is wrong."), "{}", wrong.text);
    act(&browser, &[("action", "confirm"), ("password", PASSWORD)]).expect(303);

    let page = act(&browser, &[("action", "begin")]).expect(200);
    check_page(&page);
    assert!(page.text.contains("<svg "), "{}", page.text);
    let secret = page.text.split("<code>").nth(1).unwrap().split('<').next().unwrap();
    let (app, id) = (App { secret: secret.to_string() }, hidden(&page.text, "id"));
    let named =
        |name: &str, code: &str| act(&browser, &[("action", "complete"), ("id", &id), ("name", name), ("code", code)]);
    let complete = |code: &str| named("Phone", code);
    assert!(named("Ph\u{202e}one", &app.code(-1)).expect(422).text.contains("Enter a name on one line"));
    let wrong = complete("000000").expect(422);
    check_page(&wrong);
    assert!(wrong.text.contains("The code is wrong") && hidden(&wrong.text, "id") == id, "{}", wrong.text);
    let codes = complete(&app.code(-1)).expect(200);
    check_page(&codes);
    assert_eq!(codes.text.matches("<li><code>").count(), 10);
    browser.get("/console/v1/me").expect(200);
    assert_eq!(browser.get("/sign-in").expect(303).header("location"), "/");
    let page = browser.get("/two-factor").expect(200);
    check_page(&page);
    assert!(page.text.contains("Phone") && page.text.contains("Unused recovery codes: 10"), "{}", page.text);
    assert_eq!(act(&browser, &[("action", "codes")]).expect(200).text.matches("<li><code>").count(), 10);
    let forged = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "cross-site")];
    browser.send_with("POST", "/two-factor", &forged, "action=codes").expect(403);

    submit(&browser, "/sign-out", &[]).expect(303);
    let first = submit(&browser, "/sign-in", &[("email", "olga@a.example"), ("password", PASSWORD)]).expect(200);
    check_page(&first);
    assert!(first.header("set-cookie").is_empty() && first.text.contains("Enter your code"), "{}", first.text);
    let step = hidden(&first.text, "token");
    let wrong = submit(&browser, "/sign-in", &[("token", &step), ("code", "000000")]).expect(401);
    check_page(&wrong);
    assert!(wrong.text.contains("The code is wrong") && hidden(&wrong.text, "token") == step, "{}", wrong.text);
    let entered = submit(&browser, "/sign-in", &[("token", &step), ("code", &app.code(1))]).expect(303);
    browser.take_cookie(&entered);
    browser.get("/console/v1/me").expect(200);
    let late = submit(&browser, "/sign-in", &[("token", &step), ("code", &app.code(1))]).expect(409);
    check_page(&late);
    assert!(late.text.contains("Signing in took too long."), "{}", late.text);
    let id = hidden(&browser.get("/two-factor").expect(200).text, "id");
    act(&browser, &[("action", "remove"), ("id", &id)]).expect(303);
    assert!(browser.get("/two-factor").expect(200).text.contains("requires two-factor"));

    // A link of the operator.
    let link = kantoor::people::operator::sign_in_link(&server.app, "olga@a.example").unwrap();
    let path = format!("/sign-in-link/{}", token(&link));
    let mut other = Browser::new(&client);
    let page = other.get(&path).expect(200);
    check_page(&page);
    assert!(page.text.contains("<strong>Olga Owner</strong>"), "{}", page.text);
    let entered = submit(&other, &path, &[]).expect(303);
    other.take_cookie(&entered);
    assert_eq!(other.get("/sign-in").expect(303).header("location"), "/two-factor");
    let used = other.get(&path).expect(409);
    assert!(used.text.contains("Somebody has already signed in with this link"), "{}", used.text);
}

fn pages_after_the_password_have_the_language_of_the_user(db: Db) {
    let server = Server::start(db);
    let client = strict(&server);
    let browser = owner(&server, &client, "olga@a.example");
    server.execute("UPDATE users SET language = 'nl'");
    let english = [("accept-language", "en"), ("sec-fetch-site", "same-origin")];
    let shown = |browser: &Browser, method: &str, path: &str, form: &str| {
        let headers = [english[0], english[1], ("content-type", "application/x-www-form-urlencoded")];
        browser.send_with(method, path, &headers, form)
    };
    let page = shown(&browser, "GET", "/two-factor", "").expect(200);
    assert!(page.text.contains("<html lang=\"nl\">"), "{}", page.text);
    let page = shown(&browser, "POST", "/two-factor", "action=begin").expect(200);
    assert!(page.text.contains("<html lang=\"nl\">"), "{}", page.text);
    let secret = page.text.split("<code>").nth(1).unwrap().split('<').next().unwrap();
    let (app, id) = (App { secret: secret.to_string() }, hidden(&page.text, "id"));
    let form = format!("action=complete&id={id}&name=Phone&code={}", app.code(-1));
    shown(&browser, "POST", "/two-factor", &form).expect(200);

    let other = Browser::new(&client);
    let form = format!("email=olga%40a.example&password={}", PASSWORD.replace(' ', "+"));
    let page = shown(&other, "POST", "/sign-in", &form).expect(200);
    assert!(page.text.contains("<html lang=\"nl\">") && page.text.contains("authenticator-app"), "{}", page.text);
    let form = format!("token={}&language={}&code=000000", hidden(&page.text, "token"), hidden(&page.text, "language"));
    let page = shown(&other, "POST", "/sign-in", &form).expect(401);
    assert!(page.text.contains("<html lang=\"nl\">") && page.text.contains("De code klopt niet"), "{}", page.text);
}

fn a_page_with_passkeys_allows_its_script(db: Db) {
    let server = Server::with(db, |config| config.public_url = "https://kantoor.example".to_string());
    let client = strict(&server);
    let browser = owner(&server, &client, "olga@a.example");
    server.execute("UPDATE users SET language = 'en'");
    let overview = browser.get("/two-factor").expect(200);
    check_page(&overview);
    assert!(overview.text.contains("Add a passkey"), "{}", overview.text);
    let page = submit(&browser, "/two-factor", &[("action", "begin_passkey")]).expect(200);
    let policy = page.header("content-security-policy");
    let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(page.text.contains(&format!("<script nonce=\"{nonce}\">")), "{}", page.text);
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(page.text.contains("data-options=\"{&quot;challenge&quot;:"), "{}", page.text);
    let fields = [("action", "complete_passkey"), ("id", "x"), ("client_data", "e30"), ("authenticator_data", "e30")];
    assert_eq!(submit(&browser, "/two-factor", &fields).status, 404);
}
