//! Successful deliveries, and the connection pool.

use std::time::Duration;

use mail::sink::{Act, Options, Rule, Sink, Verb};
use mail::{Attachment, Failure, Mail, SmtpSettings};
use mail_parser::{MessageParser, MimeHeaders as _};

use crate::{FROM, TO, deliver, mail, message, sender};

#[test]
fn a_mail_arrives_byte_for_byte() {
    let sink = Sink::start().unwrap();
    let receipt = deliver(&sender(sink.settings())).unwrap();
    assert_eq!(receipt.response, "250 2.0.0 Kept as 1");
    let kept = &sink.mails()[0];
    assert_eq!((kept.from.as_str(), &kept.to[..]), (FROM, &[TO.to_owned()][..]));
    assert_eq!(kept.message, message());
    assert_eq!(kept.parameters, format!("SIZE={}", message().len()));
    assert!(!kept.encrypted);
}

#[test]
fn dots_at_the_start_of_lines_arrive() {
    let sink = Sink::start().unwrap();
    let sender = sender(sink.settings());
    let text = "X: y\r\n\r\n.\r\n..\r\n.. a\r\n.b.\r\nc\r\n.\r\nQUIT\r\n.\r\n";
    sender.deliver(FROM, TO, text.as_bytes()).unwrap();
    sender.deliver(FROM, TO, b"X: y\r\n\r\nno end").unwrap();
    assert_eq!(sink.mails()[0].message, text.as_bytes());
    assert_eq!(sink.mails()[1].message, b"X: y\r\n\r\nno end\r\n");
}

#[test]
fn a_large_attachment_arrives_byte_for_byte() {
    let bytes: Vec<u8> = (0..1_048_577_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let attachment =
        Attachment { name: "all.bin".into(), content_type: "application/pdf".into(), bytes: bytes.clone() };
    let mail = Mail { attachments: vec![attachment], ..mail() };
    let sink = Sink::start().unwrap();
    sender(sink.settings()).deliver(FROM, TO, &mail.to_bytes().unwrap()).unwrap();
    let kept = sink.mails().remove(0).message;
    let parsed = MessageParser::default().parse(&kept).unwrap();
    assert!(parsed.attachment(0).unwrap().contents() == bytes);
    assert_eq!(parsed.attachment(0).unwrap().attachment_name(), Some("all.bin"));
}

#[test]
fn supports_both_authentication_methods() {
    let login = ("jo@a.example".to_owned(), "pass wörd".to_owned());
    for (mechanisms, line) in [("AUTH LOGIN PLAIN", "AUTH PLAIN "), ("auth XOAUTH2 login", "AUTH LOGIN")] {
        let offers = vec![mechanisms.to_owned()];
        let sink = Sink::with(Options { offers, login: Some(login.clone()), ..Options::default() }).unwrap();
        let sender = sender(sink.settings());
        assert_eq!(sender.check(), Ok(()));
        deliver(&sender).unwrap();
        assert_eq!(sink.mails()[0].user, login.0);
        assert!(sink.lines().iter().any(|l| l.starts_with(line)), "{:?}", sink.lines());
    }
}

#[test]
fn check_reports_the_problem() {
    let sink = Sink::with(Options { login: Some(("jo".into(), "right".into())), ..Options::default() }).unwrap();
    assert_eq!(sender(sink.settings()).check(), Ok(()));
    assert_eq!(sink.lines().last().unwrap(), "QUIT");
    let wrong = SmtpSettings { password: "wrong".into(), ..sink.settings() };
    let words = sender(wrong).check().unwrap_err();
    assert!(words.contains("user name or password: 535 5.7.8 Who?"), "{words}");
    let sink = Sink::with(Options { offers: vec!["AUTH GSSAPI".into()], ..Options::default() }).unwrap();
    let settings = SmtpSettings { user: "jo".into(), password: "x".into(), ..sink.settings() };
    assert!(sender(settings).check().unwrap_err().contains("PLAIN or LOGIN"));
    assert_eq!(sink.mails(), []);
}

#[test]
fn rejects_invalid_settings() {
    let good = SmtpSettings::new("mail.example", 465);
    for bad in [
        SmtpSettings { host: String::new(), ..good.clone() },
        SmtpSettings { host: "a b".into(), ..good.clone() },
        SmtpSettings { port: 0, ..good.clone() },
        SmtpSettings { helo: "a\r\nMAIL FROM:<x@y>".into(), ..good.clone() },
        SmtpSettings { user: "jo".into(), ..good.clone() },
        SmtpSettings { timeout: Duration::ZERO, ..good.clone() },
        SmtpSettings { timeout: Duration::MAX, ..good.clone() },
        SmtpSettings { ca_file: Some("/nowhere/ca.pem".into()), ..good.clone() },
    ] {
        assert!(mail::Sender::new(mail::Route::Smtp(bad.clone())).is_err(), "{bad:?}");
    }
}

#[test]
fn reuses_a_connection() {
    let sink = Sink::start().unwrap();
    let pooled = sender(sink.settings());
    for _ in 0..3 {
        deliver(&pooled).unwrap();
    }
    assert_eq!((sink.mails().len(), sink.connections()), (3, 1));
    drop(pooled);
    assert_eq!(sink.lines().last().unwrap(), "QUIT");
    let single = sender(SmtpSettings { pool: 0, ..sink.settings() });
    deliver(&single).unwrap();
    deliver(&single).unwrap();
    assert_eq!(sink.connections(), 3);
}

#[test]
fn a_connection_that_the_server_closed_is_replaced() {
    let sink = Sink::start().unwrap();
    let sender = sender(sink.settings());
    deliver(&sender).unwrap();
    sink.hang_up();
    deliver(&sender).unwrap();
    // It announces the end at the last moment.
    sink.rule(Rule::new(Verb::Noop, Act::AnswerAndClose("421 4.4.2 Too long".into())).times(1));
    deliver(&sender).unwrap();
    // It was alive a moment ago.
    sink.rule(Rule::new(Verb::Mail, Act::Close).times(1));
    deliver(&sender).unwrap();
    sink.rule(Rule::new(Verb::Mail, Act::AnswerAndClose("421 4.4.2 Enough mails".into())).times(1));
    deliver(&sender).unwrap();
    assert_eq!((sink.mails().len(), sink.connections()), (5, 5));
}

#[test]
fn threads_share_a_sender() {
    let sink = Sink::start().unwrap();
    let sender = sender(SmtpSettings { pool: 2, ..sink.settings() });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..5).for_each(|_| drop(deliver(&sender).unwrap())));
        }
    });
    assert_eq!(sink.mails().len(), 40);
    assert!(sink.mails().iter().all(|kept| kept.message == message()));
}

#[test]
fn we_greet_by_name_or_by_address() {
    let sink = Sink::start().unwrap();
    sender(sink.settings()).check().unwrap();
    sender(SmtpSettings { helo: "office.example".into(), ..sink.settings() }).check().unwrap();
    let greetings: Vec<String> = sink.lines().into_iter().filter(|l| l.starts_with("EHLO")).collect();
    assert_eq!(greetings, ["EHLO [127.0.0.1]", "EHLO office.example"]);
}

#[test]
fn addresses_beyond_ascii_need_a_server_that_takes_them() {
    let wide = Sink::start().unwrap();
    let narrow = Sink::with(Options { offers: vec!["8BITMIME".into()], ..Options::default() }).unwrap();
    let to = "jörg@b.example";
    let letter = Mail { to: vec![to.into()], ..mail() }.to_bytes().unwrap();
    sender(wide.settings()).deliver(FROM, to, &letter).unwrap();
    assert_eq!(wide.mails()[0].to, [to]);
    assert!(wide.mails()[0].parameters.ends_with("BODY=8BITMIME SMTPUTF8"));
    // Also the other recipients of such a mail, since the address is in its headers.
    for (recipient, letter) in [(to, &message()), (TO, &letter)] {
        let outcome = sender(narrow.settings()).deliver(FROM, recipient, letter);
        assert!(matches!(&outcome, Err(Failure::Never(words)) if words.contains("SMTPUTF8")), "{outcome:?}");
    }
    // A domain has an ASCII form.
    let letter = Mail { to: vec!["jo@bücher.example".into()], ..mail() }.to_bytes().unwrap();
    sender(narrow.settings()).deliver(FROM, "jo@bücher.example", &letter).unwrap();
    assert_eq!(narrow.mails()[0].to, ["jo@xn--bcher-kva.example"]);
    assert!(letter.is_ascii());
}

#[test]
fn eight_bits_and_size_are_asked_for() {
    let sink = Sink::with(Options { offers: vec!["SIZE 100".into()], ..Options::default() }).unwrap();
    let sender = sender(sink.settings());
    let words = |message: &[u8]| match sender.deliver(FROM, TO, message) {
        Err(Failure::Never(words)) => words,
        other => panic!("{other:?}"),
    };
    assert!(words("X: y\r\n\r\né\r\n".as_bytes()).contains("8BITMIME"));
    assert!(words(&message()).contains("at most 100 bytes"));
    sender.deliver(FROM, TO, b"X: y\r\n\r\nsmall\r\n").unwrap();
    assert_eq!(sink.connections(), 1);
}

#[test]
fn the_sender_can_be_empty() {
    let sink = Sink::start().unwrap();
    sender(sink.settings()).deliver("", TO, &message()).unwrap();
    assert_eq!(sink.mails()[0].from, "");
}

#[test]
fn rejects_command_injection() {
    let sink = Sink::start().unwrap();
    let sender = sender(sink.settings());
    for bad in [
        "a@b.example>\r\nRCPT TO:<c@d.example",
        "a@b.example\nDATA",
        "a@b.example> SIZE=1",
        "a@[b>.example]",
        "a@b.example\0",
        "\"a\r\nb\"@c.example",
        "a b@c.example",
        "<a@b.example>",
        "no-address",
        "@b.example",
        "a@",
        "a@b.example,c@d.example",
    ] {
        assert!(matches!(sender.deliver(FROM, bad, &message()), Err(Failure::Never(_))), "{bad:?}");
        assert!(matches!(sender.deliver(bad, TO, &message()), Err(Failure::Never(_))), "{bad:?}");
    }
    // Line ends that some servers take for the end of a message.
    for bad in ["a\n.\nMAIL FROM:<x@y>\r\n", "a\r.\r\n", "a\r\n.\n", "a\n.\r\n", "a\0\r\n"] {
        assert!(matches!(sender.deliver(FROM, TO, bad.as_bytes()), Err(Failure::Never(_))), "{bad:?}");
    }
    assert!(matches!(sender.deliver(FROM, TO, &[b'a'; 999]), Err(Failure::Never(_))));
    assert_eq!(sink.connections(), 0);
}
