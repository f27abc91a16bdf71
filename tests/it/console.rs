//! The console: its files, its pages, what they contain for whom, and stories in a real browser.

mod browser;
mod pages;
mod passkey;
mod rules;
mod schema;
mod stories;

use crate::people::Browser;
use crate::support::{Client, Office, Reply};

/// A client that shows redirects instead of following them.
pub fn client(server: &Office) -> Client {
    let mut client = server.client();
    client.agent = ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into();
    client
}

/// Opens an address as a browser does.
pub fn open(browser: &Browser, path: &str) -> Reply {
    browser.send_with("GET", path, &[("accept", "text/html,application/xhtml+xml"), ("sec-fetch-site", "none")], "")
}

/// Returns the path of the files that a page names.
pub fn assets(page: &Reply) -> String {
    page.text.split("data-assets=\"").nth(1).unwrap().split('"').next().unwrap().replace("&#x2f;", "/")
}
