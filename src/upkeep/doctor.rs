//! The checks of `kantoor doctor`: what around the program could make it fail, and what to do about it. They change nothing.

mod backups;
mod database;
mod machine;
mod mail;
mod outside;

use engine::config::Config;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do.
    Fine,
    /// Works, but could be better or cannot be checked.
    Advice,
    /// Does not work, or loses data.
    Problem,
}

/// The result of one check.
#[derive(Debug)]
pub struct Finding {
    /// How serious it is.
    pub verdict: Verdict,
    /// What was checked: disk, mail.
    pub topic: &'static str,
    /// What was found.
    pub found: String,
    /// What to do about it; empty if nothing.
    pub remedy: String,
}

impl Finding {
    fn fine(topic: &'static str, found: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Fine, topic, found: found.into(), remedy: String::new() }
    }

    fn advice(topic: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Advice, topic, found: found.into(), remedy: remedy.into() }
    }

    fn problem(topic: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Problem, topic, found: found.into(), remedy: remedy.into() }
    }
}

/// What to look at besides the settings.
#[derive(Default)]
pub struct Wanted {
    /// The DKIM selectors of the mail server; empty to try common ones.
    pub selectors: Vec<String>,
}

/// Runs all checks, one after the other. `report` receives each finding as soon as it is there.
pub fn examine(config: &Config, wanted: &Wanted, report: &mut dyn FnMut(Finding)) {
    machine::settings(config).into_iter().for_each(&mut *report);
    machine::disk(config).into_iter().for_each(&mut *report);
    machine::memory(config).into_iter().for_each(&mut *report);
    machine::open_files().into_iter().for_each(&mut *report);
    database::examine(config).into_iter().for_each(&mut *report);
    backups::examine(config).into_iter().for_each(&mut *report);
    mail::server(config).into_iter().for_each(&mut *report);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return report(Finding::problem("network", format!("Threads cannot be started: {error}."), ""));
        }
    };
    runtime.block_on(mail::records(config, &wanted.selectors)).into_iter().for_each(&mut *report);
    runtime.block_on(outside::files(config)).into_iter().for_each(&mut *report);
    runtime.block_on(outside::mollie(config)).into_iter().for_each(&mut *report);
    runtime.block_on(outside::single_sign_on(config)).into_iter().for_each(&mut *report);
}
