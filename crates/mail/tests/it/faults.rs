//! The outcome of a mail when the server fails at each command.

use std::time::{Duration, Instant};

use mail::sink::{Act, Options, Rule, Sink, Verb};
use mail::{Failure, Security, SmtpSettings};

use crate::{FROM, TO, deliver, message, outcome, sender};

const SESSION: [Verb; 3] = [Verb::Greeting, Verb::Ehlo, Verb::Auth];
const LETTER: [Verb; 3] = [Verb::Mail, Verb::Rcpt, Verb::Data];

#[test]
fn an_unreachable_server_is_temporary() {
    let port = Sink::start().unwrap().port();
    let settings = SmtpSettings { security: Security::None, ..SmtpSettings::new("127.0.0.1", port) };
    let failure = deliver(&sender(settings.clone())).unwrap_err();
    assert!(matches!(&failure, Failure::Later(words) if words.contains("refused")), "{failure:?}");
    assert!(sender(settings).check().unwrap_err().contains("127.0.0.1"));
}

#[test]
fn an_unresolvable_name_is_temporary() {
    let settings = SmtpSettings { security: Security::None, ..SmtpSettings::new("mail.invalid", 25) };
    assert!(matches!(deliver(&sender(settings)), Err(Failure::Later(_))));
}

#[test]
fn a_recovered_server_gets_the_mail() {
    let sink = Sink::start().unwrap();
    let sender = sender(sink.settings());
    assert!(deliver(&sender).is_ok());
    let port = sink.port();
    drop(sink);
    assert!(matches!(deliver(&sender), Err(Failure::Later(_))));
    let sink = Sink::with(Options { port, ..Options::default() }).unwrap();
    assert!(deliver(&sender).is_ok());
    assert_eq!(sink.mails().len(), 1);
}

#[test]
fn a_timeout_before_the_final_dot_is_temporary() {
    for verb in SESSION.into_iter().chain(LETTER) {
        let start = Instant::now();
        let (outcome, sink) = outcome(verb, Act::Silence);
        assert!(
            matches!(&outcome, Err(Failure::Later(words)) if words.contains("did not respond within 300ms")),
            "{verb:?}: {outcome:?}"
        );
        assert!(start.elapsed() < Duration::from_secs(5), "{verb:?}");
        assert_eq!(sink.mails(), []);
    }
}

#[test]
fn a_timeout_after_the_final_dot_is_unknown() {
    let start = Instant::now();
    let (outcome, _) = outcome(Verb::End, Act::Silence);
    assert!(matches!(&outcome, Err(Failure::Unknown(words)) if words.contains("may have arrived")), "{outcome:?}");
    assert!(start.elapsed() >= Duration::from_millis(1500), "the last reply has a longer timeout");
}

#[test]
fn a_slow_server_is_waited_for() {
    for verb in SESSION.into_iter().chain(LETTER).chain([Verb::End]) {
        let (outcome, sink) = outcome(verb, Act::Wait(Duration::from_millis(100)));
        assert!(outcome.is_ok(), "{verb:?}: {outcome:?}");
        assert_eq!(sink.mails().len(), 1);
    }
}

#[test]
fn a_4xx_is_temporary_at_every_command() {
    for verb in SESSION.into_iter().chain(LETTER).chain([Verb::End]) {
        for code in ["421", "451"] {
            let (outcome, sink) = outcome(verb, Act::answer(&format!("{code} 4.3.0 Come back tomorrow")));
            assert!(
                matches!(&outcome, Err(Failure::Later(words)) if words.contains("Come back tomorrow")),
                "{verb:?}: {outcome:?}"
            );
            assert_eq!(sink.mails(), []);
        }
    }
}

#[test]
fn a_5xx_about_the_mail_is_permanent() {
    for verb in LETTER.into_iter().chain([Verb::End]) {
        // Some libraries fail on the 7.
        for code in ["550", "571"] {
            let (outcome, sink) = outcome(verb, Act::answer(&format!("{code} 5.1.1 Not here")));
            let Err(Failure::Never(words)) = &outcome else { panic!("{verb:?}: {outcome:?}") };
            assert!(words.contains(&format!("{code} 5.1.1 Not here")), "{words}");
            assert_eq!(sink.mails(), []);
        }
    }
}

#[test]
fn a_5xx_about_the_session_concerns_the_settings() {
    for verb in SESSION {
        let (outcome, _) = outcome(verb, Act::answer("554 5.7.1 Not you"));
        assert!(
            matches!(&outcome, Err(Failure::Settings(words)) if words.contains("554 5.7.1 Not you")),
            "{verb:?}: {outcome:?}"
        );
    }
    let sink = Sink::with(Options { login: Some(("jo".into(), "secret".into())), ..Options::default() }).unwrap();
    let anonymous = SmtpSettings { user: String::new(), password: String::new(), ..sink.settings() };
    assert!(matches!(deliver(&sender(anonymous)), Err(Failure::Settings(words)) if words.contains("530")));
}

#[test]
fn a_closed_connection_before_the_final_dot_is_temporary() {
    for verb in SESSION.into_iter().chain(LETTER).chain([Verb::Content]) {
        let sink = Sink::start().unwrap();
        sink.rule(Rule::new(verb, Act::Close));
        let settings = SmtpSettings { user: "jo".into(), password: "secret".into(), ..sink.settings() };
        // Large, so that the end of the message cannot have been sent when the server disconnects.
        let mut large = message();
        large.extend(b"0123456789\r\n".repeat(2_000_000));
        let outcome = sender(settings).deliver(FROM, TO, &large);
        assert!(matches!(outcome, Err(Failure::Later(_))), "{verb:?}: {outcome:?}");
        assert_eq!(sink.mails(), []);
    }
}

#[test]
fn a_connection_closed_after_the_final_dot_is_unknown_whether_the_mail_was_kept_or_not() {
    let (lost, sink) = outcome(Verb::End, Act::Close);
    assert!(matches!(lost, Err(Failure::Unknown(_))), "{lost:?}");
    assert_eq!(sink.mails(), []);
    let (kept, sink) = outcome(Verb::End, Act::KeepAndClose);
    assert!(matches!(kept, Err(Failure::Unknown(_))), "{kept:?}");
    assert_eq!(sink.mails().len(), 1);
}

#[test]
fn an_incomplete_reply_after_the_final_dot_is_unknown() {
    for words in ["250", "25", "250-2.0.0 Kept", "what?", "354 Go on", "150 Soon", "\u{1}\u{2}"] {
        let sink = Sink::start().unwrap();
        // "250" alone is a complete reply.
        sink.rule(Rule::new(Verb::End, Act::AnswerAndClose(words.into())));
        let outcome = deliver(&sender(sink.settings()));
        match words {
            "250" => assert!(outcome.is_ok(), "{outcome:?}"),
            _ => assert!(matches!(outcome, Err(Failure::Unknown(_))), "{words}: {outcome:?}"),
        }
    }
}

#[test]
fn an_invalid_reply_before_the_final_dot_is_temporary() {
    for verb in SESSION.into_iter().chain(LETTER) {
        for words in ["HTTP/1.1 400 Bad Request", "", "é", "999 Nine", "199 One"] {
            let (outcome, _) = outcome(verb, Act::answer(words));
            assert!(matches!(outcome, Err(Failure::Later(_))), "{verb:?} {words}: {outcome:?}");
        }
    }
    let (outcome, sink) = outcome(Verb::Data, Act::answer("250 Fine"));
    assert!(matches!(outcome, Err(Failure::Later(_))), "{outcome:?}");
    assert_eq!(sink.mails(), []);
}

#[test]
fn an_endless_reply_is_temporary() {
    for words in ["x".repeat(200_000), "250-more\r\n".repeat(20_000)] {
        let (outcome, _) = outcome(Verb::Mail, Act::answer(&words));
        assert!(matches!(outcome, Err(Failure::Later(_))), "{outcome:?}");
    }
}

#[test]
fn reports_a_reason_sent_during_the_message() {
    let sink = Sink::start().unwrap();
    sink.rule(Rule::new(Verb::Content, Act::answer("552 5.3.4 Too large")));
    let outcome = deliver(&sender(sink.settings()));
    assert!(matches!(&outcome, Err(Failure::Never(words)) if words.contains("Too large")), "{outcome:?}");
}

#[test]
fn joins_multiline_replies() {
    let (outcome, _) =
        outcome(Verb::Rcpt, Act::answer("550-5.1.1 No such user.\r\n550-Look\tat\r\n550 5.1.1 our page"));
    let Err(Failure::Never(words)) = outcome else { panic!("{outcome:?}") };
    assert!(words.ends_with(": 550 5.1.1 No such user. Look at 5.1.1 our page"), "{words}");
}

#[test]
fn one_recipient_can_fail_without_the_other() {
    let sink = Sink::start().unwrap();
    sink.rule(Rule::new(Verb::Rcpt, Act::answer("550 5.1.1 Unknown")).having("nobody@"));
    let sender = sender(sink.settings());
    assert!(matches!(sender.deliver(FROM, "nobody@b.example", &message()), Err(Failure::Never(_))));
    assert!(deliver(&sender).is_ok());
    assert_eq!(sink.mails()[0].to, [TO]);
    assert_eq!(sink.connections(), 1, "a rejection does not break the connection");
}

#[test]
fn a_password_is_in_no_error_and_no_debug() {
    for mechanisms in ["AUTH PLAIN", "AUTH LOGIN"] {
        let sink = Sink::with(Options { offers: vec![mechanisms.into()], ..Options::default() }).unwrap();
        let settings = SmtpSettings { user: "jo@a.example".into(), password: "s3cret".into(), ..sink.settings() };
        // Echoes what it was sent: \0jo@a.example\0s3cret, jo@a.example and s3cret in base64.
        let echo = "535 5.7.8 What is AGpvQGEuZXhhbXBsZQBzM2NyZXQ= or czNjcmV0 or s3cret";
        sink.rule(Rule::new(Verb::Auth, Act::answer(echo)).having("AGpv"));
        sink.rule(Rule::new(Verb::Auth, Act::answer(echo)).having("czNj"));
        let sender = sender(settings.clone());
        let check = sender.check().unwrap_err();
        let failure = format!("{:?}", deliver(&sender).unwrap_err());
        for text in [&check, &failure, &format!("{settings:?}"), &format!("{sender:?}")] {
            for secret in ["s3cret", "czNj", "AGpv"] {
                assert!(!text.contains(secret), "{text}");
            }
        }
        assert!(check.contains("535 5.7.8 What is *** or *** or ***"), "{check}");
        assert!(!format!("{settings:?}").contains("jo@a.example"));
    }
}
