//! A status is named where it is declared, and nowhere else.

use std::collections::BTreeSet;

use super::{files, text};

/// Statements that cannot take a name from its declaration, by their file and the name.
const EXCEPTIONS: [(&str, &str); 8] = [
    // The conditions of a table of leases and of a table of retries are constants.
    ("src/webhooks/queue.rs", "sending"),
    ("src/webhooks/queue.rs", "queued"),
    ("src/webhooks/queue.rs", "retrying"),
    ("src/automation/run.rs", "queued"),
    ("src/automation/run.rs", "retrying"),
    // The room of the value stands behind theirs, so they must not import it: payments, and tasks.
    ("src/documents/sound.rs", "paid"),
    ("src/relations/client.rs", "open"),
    ("src/sales/deal.rs", "open"),
];

/// `status = 'paid'` in a statement goes on compiling when the status gets another name; `Status::Paid.wire()` does not.
/// Migrations are as they were, and the demo sends what a caller would.
#[test]
fn statements_take_the_names_of_values_from_their_declarations() {
    let sources: Vec<_> =
        files("src", ".rs").into_iter().filter(|path| !path.to_string_lossy().starts_with("src/demo")).collect();
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

/// The names in the lists of values: lines such as `Paid = "paid",`.
fn declared_in(text: &str) -> Vec<String> {
    let blocks =
        ["\nchoice! {", "\nopen_choice! {", "\nwords! {"].into_iter().flat_map(|start| text.split(start).skip(1));
    let lines = blocks.flat_map(|block| block.split("\n}\n").next().unwrap_or_default().lines());
    lines
        .filter_map(|line| line.trim().strip_suffix("\",")?.split_once(" = \""))
        .map(|(_, name)| name.to_string())
        .collect()
}

/// The words between single quotes that SQL compares with or lists, with their lines; without those of migrations.
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
