//! The README and the guides: every command, example and link works.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::server::Binary;
use crate::support::{Db, Server};

/// Returns the name and the text of each guide.
fn guides() -> Vec<(String, String)> {
    let files = |folder: &str| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let guides = files(".").chain(files("docs")).filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    guides.map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap())).collect()
}

/// Returns the code blocks of a guide in this language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    text.split(&format!("```{language}\n")).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Commands that other tests cover: `./check` runs the tests, and the next test handles `cargo run`. `backups.rs` runs the
/// guide about backups on both databases, `proven.rs` runs the proofs and the measurement of accounts.
fn is_covered_elsewhere(file: &str, block: &str) -> bool {
    let elsewhere = ["cargo run", "./check", "python3 proofs", "scripts/cluster", "scripts/measure-accounts"];
    elsewhere.iter().any(|start| block.starts_with(start)) || file.ends_with("backup.md")
}

#[test]
fn every_command_in_the_guides_works() {
    let db = Db::sqlite();
    let binary = Binary::start(&db, "", &[]);
    let program = Path::new(env!("CARGO_BIN_EXE_kantoor")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut count = 0;
    for (file, text) in guides() {
        for block in blocks(&text, "sh").into_iter().filter(|block| !is_covered_elsewhere(&file, block)) {
            let lines: Vec<&str> = block.lines().filter(|line| !line.starts_with("export KANTOOR_KEY=")).collect();
            let block = lines.join("\n").replace("http://127.0.0.1:8080", &binary.client.base);
            let script = format!("set -euo pipefail\ncurl() {{ command curl -sS --fail-with-body \"$@\"; }}\n{block}");
            let done = Command::new("bash")
                .args(["-c", &script])
                .env("PATH", &path)
                .env("KANTOOR_KEY", &binary.client.key)
                .env("KANTOOR_DATA", &db.data)
                .output()
                .unwrap();
            let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            assert!(done.status.success(), "{file}:\n{block}\n{said}");
            count += 1;
        }
    }
    assert!(count >= 6, "{count} blocks of commands");
}

/// The server is started without building it again. Benchmarks take too long, so only their options are checked.
#[test]
fn every_command_with_cargo_run_exists() {
    let guides = guides();
    let lines = guides.iter().flat_map(|(_, text)| blocks(text, "sh")).flat_map(|block| {
        let joined = block.replace("\\\n", " ");
        joined.lines().map(str::to_string).collect::<Vec<_>>()
    });
    let mut count = 0;
    for line in lines.filter(|line| line.starts_with("cargo run")) {
        let command = line.split('#').next().unwrap().trim();
        let (cargo, arguments) = command.split_once(" -- ").unwrap_or((command, ""));
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let source = match cargo {
            "cargo run --release" => {
                assert_eq!(arguments[0], "serve", "{line}");
                Binary::start(&Db::sqlite(), "", &arguments[1..]).client.get("/v1/products").expect(200);
                "src/main.rs"
            }
            "cargo run --release -p benches" => "benches/src/main.rs",
            "cargo run --release -p pdf --example render" => "crates/pdf/examples/render.rs",
            _ => panic!("unknown command: {line}"),
        };
        let source = std::fs::read_to_string(source).unwrap();
        let mut options = arguments.iter().filter(|word| word.starts_with("--") && arguments[0] != "serve");
        assert!(options.all(|option| source.contains(&format!("\"{option}\""))), "{line}");
        count += 1;
    }
    assert!(count >= 8, "{count} commands");
}

/// Replaces ids and times, which differ each time.
fn masked(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), masked(value))).collect(),
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::String(text) if text.len() == 36 && text.matches('-').count() == 4 => json!("an id"),
        Value::String(text) if text.len() == 24 && text.ends_with('Z') => json!("a time"),
        other => other.clone(),
    }
}

fn example(file: &str) -> Value {
    let text = std::fs::read_to_string(file).unwrap();
    serde_json::from_str(blocks(&text, "json")[0]).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn every_example_of_a_response_is_accurate() {
    let server = Server::start(Db::sqlite());
    let client = server.client();
    let readme = std::fs::read_to_string("README.md").unwrap();
    let body = readme.split("-d '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    let created = client.post("/v1/products", serde_json::from_str(body).unwrap()).expect(201);
    assert_eq!(masked(&created.json()), masked(&example("README.md")));
    let rejected = client.post("/v1/products", json!({"name": "Website hosting", "price": 12.345_678_9})).expect(422);
    assert_eq!(masked(&rejected.json()), masked(&example("docs/api.md")));
}

#[test]
fn every_example_of_a_flow_is_accepted() {
    let server = Server::start(Db::sqlite());
    let client = server.client();
    let created = client.post("/v1/automation/flows", example("docs/automation.md")).expect(201);
    assert_eq!(created.json()["meta"], json!({}));
    let guide = std::fs::read_to_string("docs/automation.md").unwrap();
    let steps: Vec<&str> = guide.split("`{\"type\": ").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    assert!(steps.len() >= 10, "{steps:?}");
    for step in steps {
        let step: Value = serde_json::from_str(&format!("{{\"type\": {step}")).unwrap();
        let event = if step["type"] == "add_ticket_message" { "ticket.created" } else { "invoice.paid" };
        let flow = json!({"name": "x", "trigger_type": "event", "trigger_key": event, "steps": [step]});
        let created = client.post("/v1/automation/flows", flow).expect(201);
        assert_eq!(created.json()["meta"], json!({}), "{}", created.text);
    }
}

/// Returns the headings of a page, as links name them.
fn headings(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let lines = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |heading: &str| {
        heading.to_lowercase().replace(|letter: char| !letter.is_alphanumeric() && !" -".contains(letter), "")
    };
    lines.map(|heading| kept(heading).replace(' ', "-")).collect()
}

#[test]
fn every_link_in_the_guides_works() {
    for (file, text) in guides() {
        let folder = Path::new(&file).parent().unwrap();
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if link.starts_with("http") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.clone().into() } else { folder.join(path) };
            assert!(target.exists(), "{file}: {link}");
            assert!(heading.is_empty() || headings(&target).contains(&heading.to_string()), "{file}: {link}");
        }
    }
}
