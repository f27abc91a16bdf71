//! Allowed and forbidden addresses.

use web::scripted::{Reply, Scripted};
use web::{Client, Failure, Settings};

use crate::{client, get, strict};

#[tokio::test]
async fn loopback_is_called_only_when_allowed() {
    let server = Scripted::start(|_| Reply::new(200)).unwrap();
    assert_eq!(get(&client(), &server.url("/")).await.unwrap().status, 200);
    assert_eq!(
        get(&strict(), &server.url("/")).await,
        Err(Failure::Refused("The address 127.0.0.1 is not allowed: it is this machine.".into()))
    );
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn rejects_a_name_that_resolves_to_loopback() {
    let server = Scripted::start(|_| Reply::new(200)).unwrap();
    let url = format!("http://localhost:{}/", server.address().port());
    let Err(Failure::Refused(why)) = get(&strict(), &url).await else { panic!("localhost was called") };
    assert!(why.starts_with("localhost resolves to ") && why.ends_with("it is this machine."), "{why}");
    assert!(strict().check_url(&url).is_ok(), "it is not detected in advance");
    assert!(server.received().is_empty());
    assert_eq!(get(&client(), &url).await.unwrap().status, 200, "of its addresses, the allowed one is called");
}

#[tokio::test]
async fn loopback_is_recognised_in_all_spellings() {
    let server = Scripted::start(|_| Reply::new(200)).unwrap();
    let port = server.address().port();
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "１２７.0.0.1",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[fd00:ec2::254]",
    ] {
        let url = format!("http://{host}:{port}/");
        let sent = get(&strict(), &url).await;
        assert!(matches!(sent, Err(Failure::Refused(_))), "{host}: {sent:?}");
        assert!(strict().check_url(&url).is_err(), "{host}");
    }
    assert!(server.received().is_empty());
}

#[test]
fn rejects_forbidden_urls_in_advance() {
    let why = |url: &str| strict().check_url(url).unwrap_err().to_string();
    assert_eq!(why("example.com/path"), "This is not a URL such as https://example.com/path.");
    assert_eq!(why("file:///etc/passwd"), "Only https and http URLs can be called, not file.");
    assert_eq!(why("https://me:secret@example.com/"), "The URL must not contain a user name or password.");
    assert_eq!(why("https://10.1.2.3/"), "The address 10.1.2.3 is not allowed: it is in a private network.");
    assert!(strict().check_url("https://example.com/hook?key=1").is_ok());
    let inside = Client::new(Settings { allowed: vec!["10.0.0.0/8".parse().unwrap()], ..Settings::default() }).unwrap();
    assert!(inside.check_url("https://10.1.2.3/").is_ok());
}

#[tokio::test]
async fn an_unknown_name_is_not_sent() {
    let sent = get(&strict(), "http://nothing.invalid/secret").await;
    let Err(Failure::NotSent(why)) = sent else { panic!("{sent:?}") };
    assert!(why.starts_with("nothing.invalid could not be reached: its host name was not found"), "{why}");
}
