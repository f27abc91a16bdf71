//! Fuzzes the parsers. The tests replay the corpus and a fixed number of mutations; this program continues for a given
//! time. See CONTRIBUTING.md.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers, which may just stop"
)]

mod mutate;
mod runner;
mod targets;

use std::process::ExitCode;
use std::time::Duration;

use runner::Runner;
use targets::TARGETS;

const USAGE: &str = "Usage: cargo run --release -p fuzz -- TARGET SECONDS [SEED]

TARGET is one of the names below, or `all`. Input that panics, hangs or breaks a rule is saved in fuzz/corpus/TARGET, so
that ./check replays it from then on. The same SEED makes the same mutations.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, seed @ ..] = &arguments[..] else { return usage() };
    let (Ok(seconds), Ok(seed)) = (seconds.parse(), seed.first().map_or(Ok(1), |seed| seed.parse())) else {
        return usage();
    };
    let chosen: Vec<_> = TARGETS.iter().filter(|target| name == "all" || target.name == name).collect();
    if chosen.is_empty() {
        return usage();
    }
    let mut failed = false;
    for target in chosen {
        let runner = Runner::new(target);
        match runner.run(u64::MAX, Duration::from_secs(seconds), seed) {
            Ok(inputs) => println!("{}: {inputs} inputs, nothing found", target.name),
            Err(found) => {
                println!("{}: {found}\nsaved as {}", target.name, runner.save(&found.input).display());
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn usage() -> ExitCode {
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    eprintln!("{USAGE}\nTargets: {}", names.join(", "));
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few enough for everyday use, and the same every time.
    fn replay(name: &str, mutations: u64) {
        let target = TARGETS.iter().find(|target| target.name == name).unwrap();
        let runner = Runner::new(target);
        if let Err(found) = runner.run(mutations, Duration::MAX, 1) {
            panic!("{found}");
        }
    }

    #[test]
    fn json() {
        replay("json", 20_000);
    }

    #[test]
    fn cron() {
        replay("cron", 3_000);
    }

    #[test]
    fn template() {
        replay("template", 3_000);
    }

    #[test]
    fn conditions() {
        replay("conditions", 10_000);
    }

    #[test]
    fn signed() {
        replay("signed", 3_000);
    }

    #[test]
    fn multipart() {
        replay("multipart", 1_000);
    }

    #[test]
    fn every_target_has_a_corpus_and_every_corpus_a_target() {
        let folder = std::path::Path::new(runner::CORPUS);
        let mut folders: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        folders.sort();
        let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        names.sort_unstable();
        assert_eq!(folders, names);
    }
}
