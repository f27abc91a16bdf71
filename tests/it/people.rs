//! People: users and their roles, signing in, and sessions as callers of the API.

mod assigned;
mod bounds;
pub mod commands;
mod confirmation;
mod factors;
mod failures;
mod flooded;
mod granted;
mod issuer;
mod mailed_links;
mod pages;
mod passkeys;
mod preferences;
mod present;
mod roles;
pub mod signing_in;
mod switched;
mod two_factor_pages;
mod users;

use engine::accounts::Account;
use kantoor::people::operator;
use serde_json::{Value, json};

use crate::support::{Client, Reply, Server};

/// A password that is allowed.
pub const PASSWORD: &str = "correct horse battery";

pub use signing_in::use_sink;

/// The browser of a person: it sends a cookie and no key.
#[derive(Clone)]
pub struct Browser {
    pub client: Client,
    pub cookie: String,
}

impl Browser {
    pub fn new(client: &Client) -> Browser {
        Browser { client: client.clone(), cookie: String::new() }
    }

    /// Sends a request from one of our own pages.
    pub fn send(&self, method: &str, path: &str, body: &str) -> Reply {
        self.send_with(method, path, &[("sec-fetch-site", "same-origin")], body)
    }

    /// Sends a request with the cookie and these headers.
    pub fn send_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut all = vec![("authorization", ""), ("cookie", self.cookie.as_str()), ("user-agent", "Test/1.0")];
        all.extend(headers);
        self.client.send(method, path, &all, body)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "")
    }

    pub fn post(&self, path: &str, body: Value) -> Reply {
        self.send("POST", path, &body.to_string())
    }

    /// Sends a request that starts a session, and stores its cookie.
    #[track_caller]
    pub fn enter(&mut self, path: &str, body: Value) -> Reply {
        let reply = self.post(path, body).expect(200);
        self.take_cookie(&reply);
        reply
    }

    #[track_caller]
    pub fn take_cookie(&mut self, reply: &Reply) {
        let cookie = reply.header("set-cookie");
        assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{reply:?}");
        self.cookie = cookie.split(';').next().unwrap().to_string();
    }

    #[track_caller]
    pub fn sign_in(&mut self, email: &str) -> Reply {
        self.enter("/console/sign-in", json!({"email": email, "password": PASSWORD}))
    }
}

pub fn account(server: &Server, client: &Client) -> Account {
    let number = client.account;
    server.app.store.read_now(move |tx| Account::numbered(tx, number)).unwrap()
}

/// Returns the token at the end of a link.
pub fn token(link: &str) -> String {
    link.rsplit('/').next().unwrap().to_string()
}

/// Returns the token of a new set-up link.
pub fn set_up_token(server: &Server, client: &Client) -> String {
    token(&operator::set_up(&server.app, account(server, client)).unwrap())
}

/// Creates the first owner of an account and returns their browser.
pub fn owner(server: &Server, client: &Client, email: &str) -> Browser {
    let mut browser = Browser::new(client);
    let body = json!({"token": set_up_token(server, client), "email": email, "name": "Olga Owner", "password": PASSWORD, "language": "nl"});
    browser.enter("/console/set-up", body);
    browser
}

/// Invites a user; returns their id and the token of the link.
#[track_caller]
pub fn invite(client: &Client, email: &str, role: &str) -> (String, String) {
    let reply = client.post("/v1/users", json!({"email": email, "name": "Ina", "role": role})).expect(201);
    let link = reply.json()["meta"]["invite_url"].as_str().unwrap().to_string();
    (reply.id(), token(&link))
}

/// Invites a user who accepts; returns the id and the browser.
#[track_caller]
pub fn member(client: &Client, email: &str, role: &str) -> (String, Browser) {
    let (id, token) = invite(client, email, role);
    let mut browser = Browser::new(client);
    browser.enter("/console/accept-invite", json!({"token": token, "password": PASSWORD}));
    (id, browser)
}
