//! Sends the signed heads of all logs out every day (`audit_anchor`): whoever changes the database cannot change what is kept
//! elsewhere.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use engine::accounts::SHARED;
use engine::app::App;
use engine::error::{Code, Error, Result};
use engine::heads::{self, Head};
use engine::jobs::{self, Claimed, Ending, FOREVER, Job, Lane};
use mail::{Attachment, Mail, NamedAddress, Sender};
use serde::{Deserialize, Serialize};
use store::Tx;
use tokio::runtime::Handle;
use web::{Method, OutgoingRequest};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The job. It wakes up every hour, since a job that is due later counts as scheduled by a wrong clock, and sends once a day.
#[derive(Default, Serialize, Deserialize)]
pub struct SendHeads {
    /// When the heads were last sent.
    #[serde(default)]
    sent_at: i64,
    /// Where they were sent.
    #[serde(default)]
    sent_to: String,
}

/// Makes the job due when a server starts with the setting, which may be new.
pub(crate) fn start(app: &Arc<App>) {
    if app.config.audit_anchor.is_empty() {
        return;
    }
    let (store, now) = (app.store.clone(), app.clock.now());
    tokio::task::spawn_blocking(move || {
        let due = move |tx: &mut Tx| jobs::hasten(tx, SHARED, SendHeads::LANE, SendHeads::KIND, now);
        if let Err(error) = store.write_now(SHARED, due) {
            tracing::warn!(cause = %error, "The heads of the logs are sent to audit_anchor within an hour, not now.");
        }
    });
}

impl Job for SendHeads {
    const KIND: &'static str = "send_heads";
    const LANE: Lane = Lane::Outside;
    const TRIES: i64 = FOREVER;

    fn run(&self, app: &App, claimed: &Claimed) -> Result<Ending> {
        let now = app.clock.now();
        let next = Ending::Again(now.plus_seconds(HOUR));
        let to = &app.config.audit_anchor;
        // A time in the future was set by a wrong clock.
        let is_sent = (0..DAY * 1000).contains(&(now.0 - self.sent_at)) && self.sent_to == *to;
        if to.is_empty() || is_sent {
            return Ok(next);
        }
        match send(app) {
            Ok(()) => {
                let (claimed, vault, sent_at, to) = (claimed.clone(), app.site.vault.clone(), now.0, to.clone());
                let kept = move |tx: &mut Tx| claimed.keep(tx, &vault, &SendHeads { sent_at, sent_to: to.clone() });
                app.store.write_now(SHARED, kept)?;
            }
            Err(error) => {
                let cause = error.internal.as_deref().unwrap_or(&error.message);
                tracing::error!(cause, "The heads of the logs could not be sent to audit_anchor; retrying in an hour.");
            }
        }
        Ok(next)
    }
}

/// Signs all heads and sends them to the place in the settings. Blocks.
pub fn send(app: &App) -> Result<()> {
    heads::sign(&app.store, &app.site.vault)?;
    let mut saved: Vec<(i64, Head)> = app.store.read_now(heads::saved)?.into_iter().collect();
    saved.retain(|(account, _)| *account != SHARED);
    saved.sort_unstable_by_key(|(account, _)| *account);
    let saved: Vec<Head> = saved.into_iter().map(|(_, head)| head).collect();
    let (text, anchor) = (heads::written(&saved, app.clock.now()), app.config.audit_anchor.as_str());
    match anchor.split_once(':') {
        Some(("file", path)) => append(path.strip_prefix("//").unwrap_or(path), &text),
        Some(("mailto", address)) => mail(app, address, text),
        Some(("http" | "https", _)) => call(app, anchor, text),
        _ => Err(failed("audit_anchor must start with file:, mailto:, http:// or https://")),
    }
}

/// Adds them to a file, which `kantoor verify --against` reads as a whole.
fn append(path: &str, text: &str) -> Result<()> {
    let file = std::fs::File::options().create(true).append(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| failed(&format!("{path}: {error}")))
}

fn mail(app: &App, address: &str, text: String) -> Result<()> {
    let (from, now) = (app.config.mail_from.clone(), app.clock.now());
    let day = &now.to_string()[..10];
    // Attached, since mail programs wrap the lines of a text.
    let heads = Attachment {
        name: format!("kantoor-heads-{day}.txt"),
        content_type: "text/plain; charset=utf-8".to_string(),
        bytes: text.into_bytes(),
    };
    let mail = Mail {
        from: NamedAddress { name: "Kantoor".to_string(), email: from.clone() },
        reply_to: None,
        to: vec![address.to_string()],
        cc: Vec::new(),
        subject: format!("Kantoor: signed heads of the logs, {day}"),
        text: format!(
            "Keep the attached file, and compare the logs with it later:\n\nkantoor verify --against {}\n",
            heads.name
        ),
        html: String::new(),
        attachments: vec![heads],
        message_id: app.ids.next(),
        date_ms: now.0,
        headers: vec![("Auto-Submitted".to_string(), "auto-generated".to_string())],
    };
    let bytes = mail.to_bytes().map_err(|invalid| failed(&format!("{}: {}", invalid.field, invalid.reason)))?;
    let sent = app.services.get::<Sender>().deliver(&from, address, &bytes);
    sent.map(drop).map_err(|failure| failed(failure.words()))
}

fn call(app: &App, url: &str, text: String) -> Result<()> {
    let headers = vec![("content-type".to_string(), "text/plain; charset=utf-8".to_string())];
    let request = OutgoingRequest { method: Method::POST, url: url.to_string(), headers, body: text.into_bytes() };
    let answer = Handle::current().block_on(app.web.reading(1024).send(request));
    match answer {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
        Ok(answer) => Err(failed(&format!("the receiver responded with status {}", answer.status))),
        Err(failure) => Err(failed(&failure.to_string())),
    }
}

fn failed(why: &str) -> Error {
    Error::new(Code::Unavailable, why)
}
