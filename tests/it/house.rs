//! Rules about the repository itself, read from its files.

mod proofs;
mod rooms;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use engine::clock::{Ids, Moment};
use engine::jobs::{Ending, Lane, NewJob};

use crate::on_both;
use crate::support::{Db, Server};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The folders with our own code.
const CODE: [&str; 5] = ["src", "crates", "tests", "benches", "fuzz"];

/// Returns the files with this extension below a folder, by their paths from the root.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(ROOT).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path.strip_prefix(ROOT).unwrap().to_path_buf());
            }
        }
    }
    found.sort();
    found
}

fn code() -> Vec<PathBuf> {
    CODE.iter().flat_map(|folder| files(folder, ".rs")).collect()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

#[test]
fn no_file_has_more_than_600_lines() {
    let long: Vec<String> = code()
        .iter()
        .map(|path| (path, text(path).lines().count()))
        .filter(|(_, lines)| *lines > 600)
        .map(|(path, lines)| format!("{}: {lines}", path.display()))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// An override of the profile for the package of the program resets `strip`.
#[test]
fn the_program_is_stripped() {
    let manifest = text(Path::new("Cargo.toml"));
    let (_, release) = manifest.split_once("[profile.release]").unwrap();
    assert!(release.contains("\nstrip = \"symbols\"\n") && !release.contains("\nkantoor."), "{release}");
}

/// The data of the demo is a list, and not better in pieces.
#[test]
fn no_function_has_more_than_80_lines() {
    let mut long = Vec::new();
    for path in code().into_iter().filter(|path| !path.starts_with("src/demo")) {
        let text = text(&path);
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate().filter(|(_, line)| is_function(line)) {
            let indent = &line[..line.len() - line.trim_start().len()];
            let (end, without_body) = (format!("{indent}}}"), format!("{indent})"));
            let is_end = |line: &str| line == end || (line.starts_with(&without_body) && line.ends_with(';'));
            let length = lines[start..].iter().position(|line| is_end(line)).map_or(1, |end| end + 1);
            if length > 80 {
                long.push(format!("{}:{}: {length}", path.display(), start + 1));
            }
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

/// Whether a line begins a function with a body; one that ends on its line is short.
fn is_function(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "fn").collect();
    let is_declared = words.len() < line.split_whitespace().count();
    let may_precede = |word: &&str| word.starts_with("pub") || ["const", "async", "in", "self)"].contains(word);
    is_declared && words.iter().all(may_precede) && !line.ends_with(['}', ';'])
}

/// A snapshot that no test compares is misleading.
#[test]
fn no_snapshot_is_orphaned() {
    let there: BTreeSet<PathBuf> = CODE.iter().flat_map(|folder| files(folder, ".snap")).collect();
    let used: BTreeSet<PathBuf> = files("tests", ".rs").iter().flat_map(|path| snapshots_of(path)).collect();
    assert!(!used.is_empty());
    let orphaned: Vec<&PathBuf> = there.difference(&used).collect();
    assert!(orphaned.is_empty(), "no test names these snapshots: {orphaned:#?}");
}

/// Returns the snapshot files that a test file names: `tests/it/a/b.rs` has `it__a__b__NAME.snap`.
fn snapshots_of(path: &Path) -> Vec<PathBuf> {
    let module: Vec<String> = path.with_extension("").iter().skip(1).map(|part| part.display().to_string()).collect();
    let folder = path.parent().unwrap().join("snapshots");
    let text = text(path);
    let names =
        text.split("snapshot!(").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    names.map(|name| folder.join(format!("{}__{name}.snap", module.join("__")))).collect()
}

on_both![a_test_that_leaves_a_job_behind_fails];

/// Every test has this check at its end: see `Server` in support.rs.
fn a_test_that_leaves_a_job_behind_fails(db: Db) {
    let server = Server::start(db);
    let now = Moment::parse("2026-05-04T10:00:00Z").unwrap();
    let job = NewJob {
        account: 1,
        kind: "a",
        lane: Lane::Other,
        payload: "{}".into(),
        run_at: now,
        max_attempts: 1,
        unique_key: None,
    };
    let (claimant, vault) = (server.app.claimant.clone(), server.app.site.vault.clone());
    let claimed = server.app.store.write_now(0, move |tx| {
        job.enqueue(tx, &Ids::SYSTEM, &vault, now)?;
        claimant.claim(tx, now, Lane::Other, &["a"], 1)
    });
    let job = claimed.unwrap().pop().unwrap();
    assert_eq!(server.jobs_left(), ["a is running: "]);
    let failed = Ending::Failed("no paper".to_string());
    server.app.store.write_now(0, move |tx| job.finish(tx, &failed, now)).unwrap();
    assert_eq!(server.jobs_left(), ["a is failed: no paper"]);
    server.leaves_jobs();
}
