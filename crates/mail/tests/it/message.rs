//! The content of mails, and invalid fields.

use mail::{Attachment, Invalid, Mail, NamedAddress};
use mail_parser::{MessageParser, MimeHeaders as _};
use proptest::prelude::*;

use crate::mail;

fn text(mail: &Mail) -> String {
    String::from_utf8(mail.to_bytes().unwrap()).unwrap()
}

fn pdf(name: &str, bytes: &[u8]) -> Attachment {
    Attachment { name: name.into(), content_type: "application/pdf".into(), bytes: bytes.into() }
}

#[test]
fn a_mail_of_text_only() {
    assert_eq!(
        text(&mail()),
        "Date: Wed, 03 Jul 2024 09:46:40 +0000\r\n\
         Message-ID: <0190-7c@a.example>\r\n\
         From: Sender <sender@a.example>\r\n\
         To: reader@b.example\r\n\
         MIME-Version: 1.0\r\n\
         Subject: Hello\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\
         \r\n\
         Hello\r\n\r\n"
    );
}

#[test]
fn a_mail_with_everything() {
    let mail = Mail {
        from: NamedAddress { name: "Müller & Zn, \"B.V.\"".into(), email: "info@bücher.example".into() },
        reply_to: Some(NamedAddress { name: "Desk".into(), email: "desk@a.example".into() }),
        to: vec!["a@b.example".into(), "c@d.example".into()],
        cc: vec!["e@f.example".into()],
        subject: "Größe 2024-001 — €\u{a0}12".into(),
        text: "Beste Zoë,\n\n.\n= 100% =\ntrailing \n".into(),
        html: "<p>Beste Zoë</p>".into(),
        attachments: vec![pdf("Größe “één”.pdf", b"%PDF"), pdf("b.pdf", b"")],
        headers: vec![
            ("In-Reply-To".into(), "<1@b.example>".into()),
            ("References".into(), "<1@b.example> <2@b.example>".into()),
            ("Auto-Submitted".into(), "auto-generated".into()),
        ],
        ..mail()
    };
    let bytes = mail.to_bytes().unwrap();
    assert!(bytes.is_ascii());
    assert_eq!(bytes, mail.to_bytes().unwrap(), "the same bytes for every attempt");
    let parsed = MessageParser::default().parse(&bytes).unwrap();
    let from = parsed.from().unwrap().first().unwrap();
    assert_eq!(from.name(), Some("Müller & Zn, \"B.V.\""));
    assert_eq!(from.address(), Some("info@xn--bcher-kva.example"));
    assert_eq!(parsed.reply_to().unwrap().first().unwrap().address(), Some("desk@a.example"));
    let to: Vec<_> = parsed.to().unwrap().iter().filter_map(|a| a.address()).collect();
    assert_eq!(to, ["a@b.example", "c@d.example"]);
    assert_eq!(parsed.cc().unwrap().first().unwrap().address(), Some("e@f.example"));
    assert_eq!(parsed.subject(), Some(mail.subject.as_str()));
    assert_eq!(parsed.message_id(), Some("0190-7c@xn--bcher-kva.example"));
    assert_eq!(parsed.body_text(0).unwrap().replace("\r\n", "\n"), mail.text);
    assert_eq!(parsed.body_html(0).unwrap(), mail.html);
    assert_eq!(parsed.in_reply_to().as_text(), Some("1@b.example"));
    assert_eq!(parsed.references().as_text_list().unwrap(), ["1@b.example", "2@b.example"]);
    assert_eq!(parsed.header_raw("Auto-Submitted").unwrap().trim(), "auto-generated");
    assert_eq!(parsed.attachment_count(), 2);
    assert_eq!(parsed.attachment(0).unwrap().attachment_name(), Some("Größe “één”.pdf"));
    assert_eq!(parsed.attachment(0).unwrap().contents(), b"%PDF");
    assert_eq!(parsed.attachment(0).unwrap().content_type().unwrap().subtype(), Some("pdf"));
    assert_eq!(parsed.attachment(1).unwrap().contents(), b"");
}

#[test]
fn many_recipients_fit() {
    let many: Vec<String> = (0..50).map(|i| format!("{}{i}@{}.example", "a".repeat(60), "b".repeat(60))).collect();
    let mail = Mail { to: many.clone(), cc: many.clone(), ..mail() };
    let bytes = mail.to_bytes().unwrap();
    let parsed = MessageParser::default().parse(&bytes).unwrap();
    for list in [parsed.to(), parsed.cc()] {
        let read: Vec<_> = list.unwrap().iter().filter_map(|a| a.address()).collect();
        assert_eq!(read, many);
    }
}

#[test]
fn long_names_fit() {
    for name in ["€".repeat(255), "\"".repeat(255), "ab ".repeat(84), "a".repeat(255)] {
        let mut mail = mail();
        mail.from.name = name.clone();
        let bytes = mail.to_bytes().unwrap();
        let parsed = MessageParser::default().parse(&bytes).unwrap();
        assert_eq!(parsed.from().unwrap().first().unwrap().name(), Some(name.trim()));
    }
}

#[test]
fn a_mail_of_html_only() {
    let mail = Mail { text: String::new(), html: "<p>Hi</p>".into(), ..mail() };
    assert!(text(&mail).contains("Content-Type: text/html; charset=utf-8\r\n"));
    assert!(!text(&mail).contains("multipart"));
}

#[test]
fn a_text_cannot_end_its_part() {
    let trap = "--=_mixed--\n--=_alternative\nContent-Type: text/html\n\n<script>\n";
    let mail = Mail { text: trap.into(), html: trap.into(), attachments: vec![pdf("a", trap.as_bytes())], ..mail() };
    let bytes = mail.to_bytes().unwrap();
    let parsed = MessageParser::default().parse(&bytes).unwrap();
    assert_eq!(parsed.parts.len(), 5);
    assert_eq!(parsed.body_text(0).unwrap().replace("\r\n", "\n"), trap);
    assert_eq!(parsed.attachment(0).unwrap().contents(), trap.as_bytes());
}

#[test]
fn an_attached_mail_is_a_plain_file() {
    let attachment =
        Attachment { name: "mail.eml".into(), content_type: "message/rfc822".into(), bytes: b"A: b\r\n\r\n".to_vec() };
    let mail = Mail { attachments: vec![attachment], ..mail() };
    assert!(text(&mail).contains("Content-Type: application/octet-stream\r\n"));
}

#[test]
fn encodes_subjects_exactly() {
    for subject in [
        "",
        " ",
        "a  b ",
        "=?utf-8?q?Fake?=",
        &"x".repeat(998),
        &"word ".repeat(150),
        &"€".repeat(300),
        "Re: [x] ✅",
        ".",
    ] {
        let mail = Mail { subject: subject.into(), ..mail() };
        let bytes = mail.to_bytes().unwrap();
        assert!(bytes.split(|&b| b == b'\n').all(|line| line.len() < 80), "{subject}");
        let parsed = MessageParser::default().parse(&bytes).unwrap();
        assert_eq!(parsed.subject().unwrap_or_default().trim_end(), subject.trim_end());
    }
}

#[test]
fn rejects_line_breaks_in_headers() {
    type Put = fn(&mut Mail, String);
    let fields: [(&str, Put); 15] = [
        ("from", |m, s| m.from.name = s),
        ("from", |m, s| m.from.email = s),
        ("reply_to", |m, s| m.reply_to = Some(NamedAddress { name: s, email: "a@b.example".into() })),
        ("reply_to", |m, s| m.reply_to = Some(NamedAddress { name: String::new(), email: s })),
        ("to", |m, s| m.to[0] = s),
        ("to", |m, s| m.to.push(s)),
        ("cc", |m, s| m.cc.push(s)),
        ("subject", |m, s| m.subject = s),
        ("attachments", |m, s| m.attachments.push(pdf(&s, b""))),
        ("attachments", |m, s| m.attachments.push(Attachment { content_type: s, ..pdf("a", b"") })),
        ("message_id", |m, s| m.message_id = s),
        ("headers", |m, s| m.headers.push((s, "x".into()))),
        ("headers", |m, s| m.headers.push(("X-A".into(), s))),
        ("headers", |m, s| m.headers.push(("In-Reply-To".into(), format!("<{s}>")))),
        ("headers", |m, s| m.headers.push((format!("X-{s}"), "x".into()))),
    ];
    for (field, put) in fields {
        for end in ["\r\n", "\n", "\r", "\0", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}", "\u{7f}", "\u{1b}"] {
            for evil in
                [format!("a@b.example{end}Bcc: x@y.example"), format!("{end}a@b.example"), format!("a@b.example{end}")]
            {
                let mut mail = mail();
                put(&mut mail, evil.clone());
                let refused = mail.to_bytes();
                assert!(
                    matches!(&refused, Err(Invalid { field: f, .. }) if *f == field),
                    "{field} {evil:?}: {refused:?}"
                );
            }
        }
    }
}

#[test]
fn the_texts_may_have_any_line_breaks() {
    for end in ["\r\n", "\n", "\r", "\n\r"] {
        let body = format!("a{end}.{end}Bcc: x@y.example{end}{end}b\0");
        let mail = Mail { text: body.clone(), html: body, ..mail() };
        let bytes = mail.to_bytes().unwrap();
        assert!(!String::from_utf8(bytes.clone()).unwrap().replace("\r\n", "").contains(['\r', '\n', '\0']));
        assert!(MessageParser::default().parse(&bytes).unwrap().bcc().is_none());
    }
}

#[test]
fn rejects_invalid_fields() {
    let refused = |put: fn(&mut Mail)| {
        let mut mail = mail();
        put(&mut mail);
        mail.to_bytes().unwrap_err().field
    };
    assert_eq!(refused(|m| m.to.clear()), "to");
    assert_eq!(refused(|m| m.to[0] = "a@b.example, c@d.example".into()), "to");
    assert_eq!(refused(|m| m.to[0] = "Jo <a@b.example>".into()), "to");
    assert_eq!(refused(|m| m.to[0] = format!("{}@b.example", "a".repeat(65))), "to");
    assert_eq!(refused(|m| m.from.email = String::new()), "from");
    assert_eq!(refused(|m| m.from.name = "a".repeat(256)), "from");
    assert_eq!(refused(|m| m.date_ms = -1), "date_ms");
    assert_eq!(refused(|m| m.date_ms = i64::MAX), "date_ms");
    assert_eq!(refused(|m| m.message_id = "a..b".into()), "message_id");
    assert_eq!(refused(|m| m.message_id = "a@b".into()), "message_id");
    assert_eq!(refused(|m| m.message_id = String::new()), "message_id");
    assert_eq!(refused(|m| m.attachments = vec![Attachment::default()]), "attachments");
    assert_eq!(
        refused(|m| m.attachments = vec![Attachment { content_type: "pdf".into(), ..pdf("a", b"") }]),
        "attachments"
    );
    for name in ["From", "bcc", "Content-Type", "MIME-Version", "Resent-To", "", "a b", "a:b", "é"] {
        let mail = Mail { headers: vec![(name.into(), "x".into())], ..mail() };
        assert_eq!(mail.to_bytes().unwrap_err().field, "headers", "{name}");
    }
    assert_eq!(refused(|m| m.headers = vec![("X-A".into(), "1".into()), ("x-a".into(), "2".into())]), "headers");
    assert_eq!(refused(|m| m.headers = vec![("X-A".into(), "x".repeat(2000))]), "headers");
}

/// Ordinary text, ASCII text, and hostile text.
fn any_line() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,80}", "[ -~]{0,160}", "[a-c =?_;:,<>@()\"'\\\\.%é€\u{1F600}-]{0,80}"]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["(?s).{0,200}", "[ -~\r\n\t]{0,400}", "[a-c =._\r\né€-]{0,300}"]
}

proptest! {
    /// Whatever the fields, a mail parses back to them, and has no additional headers.
    #[test]
    fn a_mail_reads_back(
        name in any_line(),
        subject in any_line(),
        text in any_text(),
        html in any_text(),
        file in any_line(),
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut mail = mail();
        mail.from.name = name.clone();
        mail.subject = subject.clone();
        mail.text = format!("-{text}");
        mail.html = format!("-{html}");
        let file = format!("f{file}");
        mail.attachments = vec![pdf(&file, &bytes)];
        prop_assume!(file.len() <= 255);
        prop_assume!(![&name, &subject, &file].iter().any(|t| t.contains(['\u{2028}', '\u{2029}'])));
        let built = mail.to_bytes().unwrap();
        prop_assert!(built.is_ascii());
        let parsed = MessageParser::default().parse(&built).unwrap();
        prop_assert_eq!(parsed.headers().len(), 7);
        prop_assert_eq!(parsed.parts.len(), 5);
        prop_assert_eq!(parsed.subject().unwrap_or_default(), subject.as_str());
        prop_assert_eq!(parsed.attachment(0).unwrap().contents(), &bytes[..]);
        prop_assert_eq!(parsed.attachment(0).unwrap().attachment_name(), Some(file.as_str()));
        prop_assert_eq!(parsed.from().unwrap().first().unwrap().name().unwrap_or_default(), name.trim());
        let lines = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
        prop_assert_eq!(lines(&parsed.body_text(0).unwrap()), lines(&mail.text));
        prop_assert_eq!(lines(&parsed.body_html(0).unwrap()), lines(&mail.html));
    }
}
