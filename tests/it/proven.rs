//! The proofs that are commands (docs/proofs.md), with a few rounds each. Whoever wants certainty runs more of them.

use std::process::{Command, Output};

use crate::cli::said;
use crate::on_both;
use crate::support::Db;

/// Runs a proof on a new database of the same kind; `None` where it cannot run.
fn prove(db: &Db, arguments: &[&str]) -> Option<Output> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let database = if db.url.is_empty() { "sqlite" } else { "postgres" };
    if !runs("python3") || !runs("cc") || (database == "postgres" && !rustix::process::getuid().is_root()) {
        eprintln!("skipped: it needs python3 and cc, and for PostgreSQL root");
        return None;
    }
    let mut command = Command::new("python3");
    command.arg("proofs").args(arguments).args(["--database", database, "--binary", env!("CARGO_BIN_EXE_kantoor")]);
    Some(command.arg("--folder").arg(db.folder.path()).output().unwrap())
}

#[track_caller]
fn holds(db: &Db, arguments: &[&str]) {
    let Some(done) = prove(db, arguments) else { return };
    assert!(done.status.success(), "{arguments:?}: {}{}", said(&done), String::from_utf8_lossy(&done.stderr));
    assert!(said(&done).contains(" on "), "{}", said(&done));
}

on_both![power_cuts, failing_disks, attacks_of_a_neighbour];

#[test]
fn kills() {
    holds(&Db::sqlite(), &["kill", "--rounds", "2"]);
}

fn power_cuts(db: Db) {
    holds(&db, &["power", "--rounds", "1"]);
    // A proof is worth something if it notices. PostgreSQL's own setting is not ours to test each time.
    let promises: &[&str] = if db.url.is_empty() { &["sync", "order"] } else { &["order"] };
    for promise in promises {
        let Some(done) = prove(&db, &["power", "--rounds", "8", "--break", promise]) else { return };
        let text = format!("{}{}", said(&done), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && text.contains("caught in round"), "{promise}: {text}");
    }
}

fn failing_disks(db: Db) {
    holds(&db, &["full-disk", "--rounds", "1"]);
    holds(&db, &["failed-sync", "--rounds", "1"]);
}

/// The others have tests of their own.
fn attacks_of_a_neighbour(db: Db) {
    holds(&db, &["neighbours", "--paths", "claims|streams"]);
}

#[test]
fn clock_jumps() {
    holds(&Db::sqlite(), &["clock", "--rounds", "2"]);
}

/// The figures in docs/scale.md can be measured again.
#[test]
fn the_cost_of_accounts_can_be_measured() {
    let arguments = ["--accounts", "1,3", "--invoices", "2", "--settle", "1", "--idle", "0.2"];
    let mut command = Command::new("scripts/measure-accounts");
    let done = command.args(arguments).env("KANTOOR_BIN", env!("CARGO_BIN_EXE_kantoor")).output().unwrap();
    if done.status.code() == Some(127) {
        eprintln!("skipped: it needs python3");
        return;
    }
    let told = said(&done);
    assert!(done.status.success(), "{told}{}", String::from_utf8_lossy(&done.stderr));
    for start in ["An empty database: ", "| 1 | ", "| 3 | ", "A final invoice with three rows: "] {
        assert!(told.lines().any(|line| line.starts_with(start)), "{start}: {told}");
    }
}

#[test]
fn the_guides_name_existing_proofs_and_options() {
    let help = |program: &str, arguments: &[&str]| {
        let done = Command::new(program).args(arguments).arg("--help").output();
        done.ok().map(|done| said(&done))
    };
    let (Some(proofs), Some(cluster)) = (help("python3", &["proofs"]), help("python3", &["scripts/cluster"])) else {
        eprintln!("skipped: it needs python3");
        return;
    };
    let mut count = 0;
    for guide in ["docs/proofs.md", "docs/scale.md"] {
        let text = std::fs::read_to_string(guide).unwrap();
        for line in
            text.lines().filter(|line| line.starts_with("python3 proofs ") || line.starts_with("scripts/cluster "))
        {
            let known = if line.starts_with("python3") { &proofs } else { &cluster };
            let words = line.split('#').next().unwrap().split_whitespace().skip(if line.starts_with("python3") {
                2
            } else {
                1
            });
            for word in
                words.filter(|word| word.starts_with("--") || word.chars().all(|letter| letter.is_ascii_lowercase()))
            {
                assert!(known.contains(word), "{guide}: {word} in {line}");
            }
            count += 1;
        }
    }
    assert!(count >= 8, "{count} commands");
}
