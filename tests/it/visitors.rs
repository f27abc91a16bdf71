//! Rate limits of clients without a key, direct and behind a proxy.

use crate::support::{Client, Db, Reply, Server};

const PAGE: &str = "/d/0123456789abcdef0123456789abcdef";
const HOOK: &str = "/hooks/mollie/x/payment/y";

/// A client without a key, possibly behind a proxy.
fn ask(client: &Client, method: &str, path: &str, forwarded: &str) -> Reply {
    let form = "application/x-www-form-urlencoded";
    client.send(method, path, &[("authorization", ""), ("content-type", form), ("x-forwarded-for", forwarded)], "")
}

#[test]
fn guessing_is_slow() {
    let server = Server::with(Db::sqlite(), |config| config.public_limit_per_minute = 3);
    let client = server.client();
    assert_eq!(ask(&client, "GET", PAGE, "").status, 404);
    assert_eq!(ask(&client, "GET", "/sandbox/x", "").status, 404);
    assert_eq!(ask(&client, "POST", HOOK, "").status, 200);

    let page = ask(&client, "GET", PAGE, "").expect(429);
    assert!(page.text.contains("Even geduld") && page.text.contains("Just a moment"), "{}", page.text);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let sandbox = ask(&client, "GET", "/sandbox/x", "").expect(429);
    assert!(sandbox.text.contains("Too many requests from your address; retry in "), "{}", sandbox.text);
    let hook = ask(&client, "POST", HOOK, "").expect(429);
    assert_eq!(hook.code(), "too_many_requests");
    for refused in [page, sandbox, hook] {
        let seconds: u32 = refused.header("retry-after").parse().unwrap();
        assert!((1..=20).contains(&seconds), "{seconds}");
    }

    assert_eq!(ask(&client, "GET", PAGE, "203.0.113.9").status, 429, "it is not a trusted proxy");
    assert_eq!(
        (client.get("/health").status, client.get("/v1/products").status),
        (200, 200),
        "other visitors are not limited"
    );

    let counted = server.block_on(engine::http::metrics::text(&server.app));
    for (line, times) in [
        ("method=\"GET\",route=\"/d/{token}\",status=\"404\"", 1),
        ("method=\"GET\",route=\"/d/{token}\",status=\"429\"", 2),
        ("method=\"GET\",route=\"/sandbox/{id}\",status=\"429\"", 1),
        ("method=\"POST\",route=\"/hooks/mollie/{account}/payment/{id}\",status=\"200\"", 1),
    ] {
        assert!(counted.contains(&format!("kantoor_http_requests_total{{{line}}} {times}\n")), "{line}: {counted}");
    }
    assert!(!counted.contains("0123456789abcdef"), "{counted}");
}

#[test]
fn trusts_the_forwarded_address_of_a_proxy() {
    let server = Server::with(Db::sqlite(), |config| {
        config.public_limit_per_minute = 2;
        config.trusted_proxies = "127.0.0.0/8, ::1".to_string();
    });
    let client = server.client();
    let statuses = |forwarded: &[&str]| -> Vec<u16> {
        forwarded.iter().map(|forwarded| ask(&client, "GET", PAGE, forwarded).status).collect()
    };
    assert_eq!(statuses(&["203.0.113.9", "203.0.113.9", "203.0.113.9"]), [404, 404, 429]);
    assert_eq!(statuses(&["1.1.1.1, 203.0.113.9", "203.0.113.9, 127.0.0.2"]), [429, 429], "the same visitor");
    assert_eq!(statuses(&["203.0.113.10", "2001:db8::1", "2001:db8::2", "2001:db8::3"]), [404, 404, 404, 429]);
}

#[test]
fn the_limit_can_be_disabled_and_invalid_proxies_are_reported() {
    let server = Server::with(Db::sqlite(), |config| config.public_limit_per_minute = 0);
    let client = server.client();
    assert!((0..400).all(|_| ask(&client, "GET", "/d/x", "").status == 404));

    let mut config = Db::sqlite().config();
    config.trusted_proxies = "10.0.0.1, proxy".to_string();
    let error = kantoor::opening::open(config).err().unwrap().to_string();
    assert!(error.contains("trusted_proxies: “proxy” is not a network"), "{error}");
}
