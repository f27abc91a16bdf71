//! What operators watch: traces at a collector, the dashboard and the alerts.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use serde_json::{Value, json};
use web::scripted::{Received, Reply, Scripted};

use crate::cli::{kantoor, said};
use crate::on_both;
use crate::server::Binary;
use crate::support::{Client, Db};

/// A collector that takes everything.
fn collector() -> Scripted {
    Scripted::start(|_| Reply::new(200).header("Content-Type", "application/x-protobuf")).unwrap()
}

/// Returns the spans of all batches.
fn spans(batches: &[Received]) -> Vec<Span> {
    let mut spans = Vec::new();
    for batch in batches {
        assert_eq!((batch.method.as_str(), batch.path.as_str()), ("POST", "/v1/traces"));
        assert_eq!(batch.header("content-type"), Some("application/x-protobuf"));
        let batch = ExportTraceServiceRequest::decode(batch.body.as_slice()).unwrap();
        for resource in batch.resource_spans {
            let attributes = resource.resource.unwrap().attributes;
            let named = attributes.iter().find(|one| one.key == "service.name").unwrap();
            assert_eq!(named.value.clone().unwrap().value, Some(Any::StringValue("kantoor".to_string())));
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    spans
}

/// Returns an attribute as text.
fn attribute(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|one| one.key == name).and_then(|one| one.value.clone()?.value);
    match found {
        Some(Any::StringValue(text)) => text,
        Some(Any::IntValue(number)) => number.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Stops the server, which sends its last spans.
fn stop(mut binary: Binary) -> String {
    binary.signal(rustix::process::Signal::TERM);
    assert!(binary.child.wait().unwrap().success());
    binary.said()
}

on_both![requests_jobs_calls_and_transactions_are_traced, the_dashboard_and_the_alerts_use_existing_metrics];

fn requests_jobs_calls_and_transactions_are_traced(db: Db) {
    let (collector, outside) = (collector(), Scripted::start(|_| Reply::new(204)).unwrap());
    let to = format!("trace_to={}", collector.url("/"));
    let arguments = ["--set", &to, "--set", "allow_private_addresses=127.0.0.1", "--set", "log_level=trace"];
    let binary = Binary::start(&db, "", &arguments);
    let client = &binary.client;
    let endpoint = json!({"url": outside.url("/secret"), "events": ["product.created"]});
    client.post("/v1/webhook-endpoints", endpoint).expect(201);
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let headers = [("traceparent", &*format!("00-{trace}-{parent}-01")), ("x-request-id", "find-me")];
    client.send("POST", "/v1/products", &headers, &json!({"name": "hush-hush"}).to_string()).expect(201);
    client.send("GET", "/v1/products?search=hush-hush", &[("traceparent", "nonsense")], "").expect(200);
    client.get("/v1/nonsense-hush-hush").expect(404);
    let invoice = json!({"title": "x", "generate": true, "rows": [{"name": "x", "unit_price": 1}]});
    client.post("/v1/invoices", invoice).expect(201);
    let started = Instant::now();
    let found = loop {
        let found = spans(&collector.received());
        let has = |name: &str| found.iter().any(|span| span.name == name);
        if !outside.received().is_empty() && has("GET /v1/products") && found.iter().any(has_job) {
            break stop_and_read(binary, &collector);
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", names(&found));
        std::thread::sleep(Duration::from_millis(50));
    };
    let (said, spans) = found;
    let one = |name: &str| spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:#?}"));

    let request = one("POST /v1/products");
    assert_eq!((hex(&request.trace_id), hex(&request.parent_span_id)), (trace.to_string(), parent.to_string()));
    assert_eq!(request.kind, SpanKind::Server as i32);
    assert_eq!(attribute(request, "http.route"), "/v1/products");
    assert_eq!(attribute(request, "http.response.status_code"), "201");
    assert_eq!(attribute(request, "kantoor.request_id"), "find-me");
    assert_eq!(attribute(request, "kantoor.account").len(), 36);
    assert!(request.end_time_unix_nano > request.start_time_unix_nano);
    let write = spans.iter().find(|span| span.parent_span_id == request.span_id && span.name == "write").unwrap();
    assert_eq!(attribute(write, "db.system.name"), if db.url.is_empty() { "sqlite" } else { "postgresql" });
    // A header that is not valid starts a new trace.
    let list = one("GET /v1/products");
    assert!(list.parent_span_id.is_empty() && list.trace_id != request.trace_id);
    assert!(spans.iter().any(|span| span.parent_span_id == list.span_id && span.name == "read"), "{spans:#?}");
    // An unknown path is not a name.
    assert_eq!(attribute(one("GET"), "http.response.status_code"), "404");
    let call = spans.iter().find(|span| attribute(span, "server.address") == "127.0.0.1").unwrap();
    assert_eq!((call.kind, attribute(call, "http.response.status_code")), (SpanKind::Client as i32, "204".into()));
    let text = format!("{spans:?}");
    for secret in ["hush-hush", "/secret", &said[said.find("kt_").unwrap()..][..39]] {
        assert!(!text.contains(secret), "{secret}");
    }
    // Spans are no part of the log.
    assert!(!said.contains("kantoor.request_id"), "{said}");
}

fn has_job(span: &Span) -> bool {
    !attribute(span, "kantoor.job.kind").is_empty()
}

fn names(spans: &[Span]) -> BTreeSet<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

fn stop_and_read(binary: Binary, collector: &Scripted) -> (String, Vec<Span>) {
    let said = stop(binary);
    (said, spans(&collector.received()))
}

#[test]
fn a_share_of_the_traces_is_sent_and_callers_decide_for_theirs() {
    let (db, collector) = (Db::sqlite(), collector());
    let to = format!("trace_to={}", collector.url(""));
    let binary = Binary::start(&db, "", &["--set", &to, "--set", "trace_one_in=1000000000"]);
    for flag in ["00", "01"] {
        let parent = format!("00-{}-00f067aa0ba902b7-{flag}", flag.repeat(16).replace("00", "0a"));
        binary.client.send("GET", "/v1/products", &[("traceparent", &parent)], "").expect(200);
    }
    for _ in 0..20 {
        binary.client.get("/v1/clients").expect(200);
    }
    stop(binary);
    let spans = spans(&collector.received());
    let requests: Vec<&Span> = spans.iter().filter(|span| span.kind == SpanKind::Server as i32).collect();
    assert_eq!(requests.len(), 1, "{requests:#?}");
    assert_eq!(hex(&requests[0].trace_id), "01".repeat(16));
}

#[test]
fn a_collector_that_is_down_stops_nothing_and_is_logged_once() {
    let db = Db::sqlite();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let binary = Binary::start(&db, "", &["--set", &format!("trace_to=http://{closed}")]);
    for _ in 0..3 {
        binary.client.post("/v1/products", json!({"name": "x"})).expect(201);
    }
    let started = Instant::now();
    while !binary.said().contains("The collector takes no traces") {
        assert!(started.elapsed() < Duration::from_secs(60), "{}", binary.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    binary.client.get("/v1/products").expect(200);
    let said = stop(binary);
    assert_eq!(said.matches("The collector takes no traces").count(), 1, "{said}");
}

/// A server on a machine without certificates of authorities.
fn uncertified(db: &Db, collector: &str) -> Binary {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kantoor"));
    command.env("SSL_CERT_FILE", "/nowhere").env("SSL_CERT_DIR", "/nowhere");
    Binary::start_with(command, db, "", &["--set", &format!("trace_to={collector}")])
}

#[test]
fn a_machine_without_certificates_sends_traces_without_tls() {
    let (db, collector) = (Db::sqlite(), collector());
    let binary = uncertified(&db, &collector.url(""));
    binary.client.get("/v1/products").expect(200);
    let (said, spans) = stop_and_read(binary, &collector);
    assert!(!said.contains("No traces are sent"), "{said}");
    assert!(names(&spans).contains("GET /v1/products"), "{:?}", names(&spans));
}

#[test]
fn a_machine_without_certificates_says_what_a_collector_with_tls_needs() {
    let db = Db::sqlite();
    let binary = uncertified(&db, "https://127.0.0.1:9");
    binary.client.post("/v1/products", json!({"name": "x"})).expect(201);
    let said = stop(binary);
    assert!(said.contains("No traces are sent over TLS: install the package ca-certificates and restart."), "{said}");
    assert!(said.contains("No CA certificates were loaded"), "{said}");
}

#[test]
fn an_invalid_collector_is_refused() {
    for address in ["collector:4318", "ftp://collector", "nonsense"] {
        let db = Db::sqlite();
        let refused = kantoor(&db, &["serve", "--set", &format!("trace_to={address}")]);
        let told = String::from_utf8_lossy(&refused.stderr).to_string();
        assert!(!refused.status.success(), "{told}");
        assert!(told.contains(&format!("trace_to: '{address}' must be a URL such as http://127.0.0.1:4318")), "{told}");
    }
}

/// Returns the names of metrics in an expression of Prometheus.
fn metrics_in(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| ["kantoor_", "process_"].iter().any(|start| word.starts_with(start))).map(Into::into).collect()
}

/// Returns all strings under this name.
fn strings<'v>(value: &'v Value, name: &str, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str() {
                    Some(text) if key == name => found.push(text),
                    _ => strings(value, name, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, name, found)),
        _ => {}
    }
}

fn the_dashboard_and_the_alerts_use_existing_metrics(db: Db) {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let binary = Binary::start(&db, "", &["--set", &format!("metrics_listen=127.0.0.1:{port}")]);
    binary.client.get("/v1/products").expect(200);
    let text = Client::new(([127, 0, 0, 1], port).into(), String::new(), 0).get("/metrics").expect(200).text;
    let exported: BTreeSet<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string("packaging/grafana/kantoor.json").unwrap()).unwrap();
    let (mut used, mut ids) = (Vec::new(), BTreeSet::new());
    strings(&dashboard, "expr", &mut used);
    strings(&dashboard["templating"], "query", &mut used);
    assert!(used.len() > 30, "{used:?}");
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels with the same id: {panel}");
    }
    let rules = std::fs::read_to_string("packaging/prometheus/kantoor.rules.yml").unwrap();
    let tests = std::fs::read_to_string("packaging/prometheus/kantoor.test.yml").unwrap();
    used.extend([rules.as_str(), tests.as_str()]);
    let files = ["kantoor_rules_yml", "kantoor_test_yml"];
    for name in used.into_iter().flat_map(metrics_in).filter(|name| !files.contains(&name.as_str())) {
        assert!(exported.contains(name.as_str()), "{name} is not exported:\n{text}");
    }
    // Every alert has a test in which it fires.
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname=\"{alert}\"")), "{alert} is not tested");
    }
}

#[test]
fn promtool_accepts_the_alerts_and_the_dashboard() {
    let promtool = |arguments: &[&str]| Command::new("promtool").args(arguments).output();
    if promtool(&["--version"]).is_err() {
        eprintln!("skipped: promtool is not installed (Debian: prometheus)");
        return;
    }
    for arguments in [
        ["check", "rules", "packaging/prometheus/kantoor.rules.yml"],
        ["test", "rules", "packaging/prometheus/kantoor.test.yml"],
    ] {
        let done = promtool(&arguments).unwrap();
        assert!(done.status.success(), "{}", said(&done));
    }
    // The expressions of the dashboard, as rules: Grafana replaces its variables first.
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string("packaging/grafana/kantoor.json").unwrap()).unwrap();
    let mut used = Vec::new();
    strings(&dashboard, "expr", &mut used);
    let rules: Vec<Value> = used
        .iter()
        .enumerate()
        .map(|(number, expression)| json!({"record": format!("r{number}"), "expr": expression.replace("$__rate_interval", "1m")}))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dashboard.yml");
    std::fs::write(&file, json!({"groups": [{"name": "dashboard", "rules": rules}]}).to_string()).unwrap();
    let done = promtool(&["check", "rules", file.to_str().unwrap()]).unwrap();
    assert!(done.status.success(), "{}", said(&done));
}
