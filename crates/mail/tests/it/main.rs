//! Mail from its fields to a server that accepts it or fails, over real sockets. One program, so that it is linked
//! once.
#![expect(clippy::unwrap_used, reason = "tests")]

mod faults;
mod folder;
mod message;
mod smtp;
mod tls;

use std::time::Duration;

use mail::sink::{Act, Rule, Sink, Verb};
use mail::{Failure, Mail, NamedAddress, Receipt, Route, Sender, SmtpSettings};

const FROM: &str = "sender@a.example";
const TO: &str = "reader@b.example";

fn mail() -> Mail {
    Mail {
        from: NamedAddress { name: "Sender".into(), email: FROM.into() },
        to: vec![TO.into()],
        subject: "Hello".into(),
        text: "Hello\n".into(),
        message_id: "0190-7c".into(),
        date_ms: 1_720_000_000_000,
        ..Mail::default()
    }
}

fn message() -> Vec<u8> {
    mail().to_bytes().unwrap()
}

/// A short timeout, so that a silent server does not delay the tests.
fn hasty(sink: &Sink) -> SmtpSettings {
    SmtpSettings { timeout: Duration::from_millis(300), ..sink.settings() }
}

fn sender(settings: SmtpSettings) -> Sender {
    Sender::new(Route::Smtp(settings)).unwrap()
}

fn deliver(sender: &Sender) -> Result<Receipt, Failure> {
    sender.deliver(FROM, TO, &message())
}

/// Sends one mail to a server with this rule.
fn outcome(at: Verb, act: Act) -> (Result<Receipt, Failure>, Sink) {
    let sink = Sink::start().unwrap();
    let settings = if act == Act::Silence { hasty(&sink) } else { sink.settings() };
    sink.rule(Rule::new(at, act));
    (deliver(&sender(SmtpSettings { user: "jo".into(), password: "secret".into(), ..settings })), sink)
}
