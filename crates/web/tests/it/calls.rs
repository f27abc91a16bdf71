//! The outcomes of calls.

use std::net::TcpListener;
use std::time::Duration;

use web::scripted::{Reply, Scripted, Then};
use web::{Client, Failure, Method, OutgoingRequest, Settings};

use crate::{client, get};

fn hasty() -> Client {
    let short = Duration::from_millis(300);
    Client::new(Settings { timeout: short, connect_timeout: short, ..Scripted::settings() }).unwrap()
}

#[tokio::test]
async fn sends_a_request_and_returns_the_response() {
    let server = Scripted::start(|received| {
        Reply { body: received.body.clone(), ..Reply::new(201) }.header("X-Two", "a").header("X-Two", "b")
    });
    let server = server.unwrap();
    let request = OutgoingRequest {
        method: Method::POST,
        url: server.url("/a%20b?c=d#e"),
        headers: vec![("X-One".into(), "é".into()), ("Content-Type".into(), "text/plain".into())],
        body: b"hello".to_vec(),
    };
    let answer = client().send(request).await.unwrap();
    assert_eq!((answer.status, &answer.body[..], answer.cut), (201, &b"hello"[..], false));
    assert_eq!(answer.headers.iter().filter(|(name, _)| name == "x-two").count(), 2);
    assert_eq!(answer.header("X-Two"), Some("a"));
    let [received] = &server.received()[..] else { panic!() };
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/a%20b?c=d"));
    assert_eq!(received.header("x-one"), Some("é"));
    assert_eq!(received.header("user-agent"), Some("kantoor"));
    assert_eq!(received.text(), "hello");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = Scripted::start(|_| Reply::new(302).header("Location", "/elsewhere")).unwrap();
    let answer = get(&client(), &server.url("/")).await.unwrap();
    assert_eq!((answer.status, answer.header("location")), (302, Some("/elsewhere")));
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sent = get(&client(), &format!("http://{free}/?secret")).await;
    let Err(Failure::NotSent(why)) = sent else { panic!("{sent:?}") };
    assert!(why.starts_with("127.0.0.1 could not be reached: Connection refused"), "{why}");
}

#[tokio::test]
async fn a_stalled_tls_handshake_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sent = get(&hasty(), &format!("https://{}/", listener.local_addr().unwrap())).await;
    assert_eq!(sent, Err(Failure::NotSent("127.0.0.1 could not be reached in time.".into())));
    let plain = Scripted::start(|_| Reply::new(200)).unwrap();
    let sent = get(&client(), &format!("https://{}/", plain.address())).await;
    assert!(matches!(sent, Err(Failure::NotSent(_))), "{sent:?}");
}

#[tokio::test]
async fn a_slow_response_is_unknown() {
    let server = Scripted::start(|_| Reply::new(200).after(Duration::from_secs(2))).unwrap();
    let sent = get(&hasty(), &server.url("/")).await;
    assert_eq!(
        sent,
        Err(Failure::Unknown("127.0.0.1 did not respond in time; the request may have been processed.".into()))
    );
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_broken_connection_is_unknown() {
    for then in [Then::CutOff, Then::CutHalf] {
        let server = Scripted::start(move |_| Reply::json(200, "[1, 2, 3]").then(then)).unwrap();
        let sent = get(&client(), &server.url("/?secret")).await;
        let Err(Failure::Unknown(why)) = sent else { panic!("{then:?}: {sent:?}") };
        assert!(why.starts_with("The connection to 127.0.0.1 was lost"), "{why}");
        assert!(!why.contains("secret"), "{why}");
        assert_eq!(server.received().len(), 1, "it is not retried");
    }
}

#[tokio::test]
async fn truncates_a_large_response() {
    let server = Scripted::start(|received| {
        let length = if received.path == "/fits" { 1000 } else { 5_000_000 };
        Reply { body: vec![7; length], ..Reply::new(200) }
    });
    let server = server.unwrap();
    let client = Client::new(Settings { answer_limit: 1000, ..Scripted::settings() }).unwrap();
    let fits = get(&client, &server.url("/fits")).await.unwrap();
    assert_eq!((fits.body.len(), fits.cut), (1000, false));
    let large = get(&client, &server.url("/large")).await.unwrap();
    assert_eq!((large.body.len(), large.cut), (1000, true));
}

#[tokio::test]
async fn rejects_headers_that_change_the_message() {
    let server = Scripted::start(|_| Reply::new(200)).unwrap();
    for (name, value) in [("Host", "a.example"), ("content-length", "5"), ("Transfer-Encoding", "chunked"), ("A b", "")]
        .into_iter()
        .chain([("X-One", "a\r\nX-Two: b")])
    {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let request = OutgoingRequest { method: Method::GET, url: server.url("/"), headers, body: Vec::new() };
        let sent = client().send(request).await;
        assert!(matches!(sent, Err(Failure::Refused(_))), "{name}: {sent:?}");
    }
    assert!(server.received().is_empty());
}

#[test]
fn one_client_serves_several_runtimes() {
    let server = Scripted::start(|_| Reply::new(200)).unwrap();
    let client = client();
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(get(&client, &server.url("/"))).unwrap().status, 200);
    }
}
