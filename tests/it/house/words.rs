//! Statuses are named only where they are declared.

use std::collections::BTreeSet;

use super::{files, text};

/// Names in statements that cannot come from their declaration, by file.
const EXCEPTIONS: [(&str, &str); 8] = [
    // The conditions of `LeaseTable` and `RetryTable` are constants.
    ("src/webhooks/queue.rs", "sending"),
    ("src/webhooks/queue.rs", "queued"),
    ("src/webhooks/queue.rs", "retrying"),
    ("src/automation/run.rs", "queued"),
    ("src/automation/run.rs", "retrying"),
    // These rooms must not import the room that declares the value: payments, and tasks.
    ("src/documents/sound.rs", "paid"),
    ("src/relations/client.rs", "open"),
    ("src/sales/deal.rs", "open"),
];

/// A statement with `status = 'paid'` still compiles after the status is renamed; one with `Status::Paid.wire()` does not.
/// Migrations, of which `documents/tables.rs` consists, keep their old names, and the demo sends the values that a caller would.
#[test]
fn statements_take_the_names_of_values_from_their_declarations() {
    let sources: Vec<_> = files("src", ".rs")
        .into_iter()
        .filter(|path| {
            !["src/demo", "src/documents/tables.rs"].iter().any(|own| path.to_string_lossy().starts_with(own))
        })
        .collect();
    let declared: BTreeSet<String> = sources.iter().flat_map(|path| declared_in(&text(path))).collect();
    assert!(declared.contains("paid") && declared.contains("retrying"));
    let mut wrong = Vec::new();
    for path in &sources {
        let name = path.to_string_lossy();
        for (number, word) in quoted_in(&text(path)) {
            let excepted = EXCEPTIONS.contains(&(&*name, &*word));
            if declared.contains(&word) && !excepted {
                wrong.push(format!("{name}:{number}: '{word}'"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the names that a file declares, in lines such as `Paid = "paid",`.
fn declared_in(text: &str) -> Vec<String> {
    let blocks =
        ["\nchoice! {", "\nopen_choice! {", "\nwords! {"].into_iter().flat_map(|start| text.split(start).skip(1));
    let lines = blocks.flat_map(|block| block.split("\n}\n").next().unwrap_or_default().lines());
    lines
        .filter_map(|line| line.trim().strip_suffix("\",")?.split_once(" = \""))
        .map(|(_, name)| name.to_string())
        .collect()
}

/// Returns the words in single quotes that SQL compares with or lists, with their line numbers; without migrations.
fn quoted_in(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_migration = false;
    for (number, line) in (1..).zip(text.lines()) {
        if in_migration {
            in_migration = !matches!(line.trim(), "\"," | "\"");
            continue;
        }
        if let Some((_, sql)) = line.split_once("sql: \"") {
            in_migration = !sql.contains('"');
            continue;
        }
        for before in ["= '", "<> '", "('", ", '"] {
            found.extend(
                line.split(before).skip(1).filter_map(|rest| Some((number, rest.split_once('\'')?.0.to_string()))),
            );
        }
    }
    found
}
