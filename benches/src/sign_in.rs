//! Signing in: time and memory of fifty people at once, and what a session costs a request compared with a key.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::load::{self, CONNECTIONS, Workload};
use crate::report::{Report, thousands};
use crate::server::{Data, Server};
use crate::{FEW, ROUNDS, in_turn};

/// People who sign in at the same time.
const PEOPLE: usize = 50;
const PASSWORD: &str = "correct horse battery";
/// Each person has an address of their own, as behind a proxy: an address may try fifty times in 15 minutes.
const SETTINGS: [&str; 2] = ["trusted_proxies=127.0.0.1", "public_limit_per_minute=0"];

/// Measures and reports both.
pub fn tell(report: &mut Report, binary: &Path, folder: &Path, measured: Duration) {
    eprintln!("Measuring sign-in.");
    let data = Data::make(binary, &folder.join("sign-in"), FEW);
    let server = Server::kantoor_with(binary, &data, &SETTINGS);
    for person in 0..PEOPLE {
        invite(&server, person);
    }
    server.stop();
    // Memory is measured from the start on, since hashing the new passwords took some.
    let server = Server::kantoor_with(binary, &data, &SETTINGS);
    let rest = server.megabytes();
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| sign_in_together(&server)).collect();
    times.sort();
    let grown = server.peak() - rest;
    let secret = sign_in(&server, 0);

    let get = Workload::Get { rows: FEW };
    let in_session = Workload::GetInSession { rows: FEW };
    let [session, key] = in_turn([&|| load::run_as(&server, &secret, in_session, measured, CONNECTIONS), &|| {
        load::run(&server, get, measured)
    }]);
    server.stop();
    let seconds = times[ROUNDS / 2].as_secs_f64();
    report.value(&format!("{PEOPLE} people sign in at once, until the last is in"), seconds, "s", 3.0);
    report.value(&format!("Memory, at most, that {PEOPLE} sign-ins at once add"), grown.max(0.0), "MB", 100.0);
    let what = format!("GET one record in a session, {} rows; limit: Kantoor with a key", thousands(FEW));
    report.compare(&what, &session, &key, Some(0.95));
    report.latency("GET one record in a session; limit: with a key", &session, Some(&key));
}

fn email(person: usize) -> String {
    format!("person{person}@bench.example")
}

/// Creates a user who accepts the invitation.
fn invite(server: &Server, person: usize) {
    let made = server.post("/v1/users", &json!({"email": email(person), "name": "Bench", "role": "reader"}));
    let link = made["meta"]["invite_url"].as_str().expect("a link, since no mail is sent");
    let token = link.rsplit('/').next().unwrap_or_default();
    ask(server, person, "/console/accept-invite", &json!({"token": token, "password": PASSWORD}));
}

/// Lets all people sign in at the same time; returns how long it takes until the last one is in.
fn sign_in_together(server: &Server) -> Duration {
    let started = Instant::now();
    std::thread::scope(|scope| {
        for person in 0..PEOPLE {
            scope.spawn(move || sign_in(server, person));
        }
    });
    started.elapsed()
}

/// Returns the secret of a new session.
fn sign_in(server: &Server, person: usize) -> String {
    let body = json!({"email": email(person), "password": PASSWORD});
    session_of(&ask(server, person, "/console/sign-in", &body))
}

/// Returns the secret of the session that a response starts.
pub fn session_of(head: &str) -> String {
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: kantoor="));
    cookie.and_then(|cookie| cookie.split(';').next()).expect("a session").to_string()
}

/// Sends a request from one of our own pages, from the address of this person; returns the header of the response.
pub fn ask(server: &Server, person: usize, path: &str, body: &Value) -> String {
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\nSec-Fetch-Site: same-origin\r\nX-Forwarded-For: 203.0.113.{person}\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a server that listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    answer.split("\r\n\r\n").next().unwrap_or_default().to_string()
}
