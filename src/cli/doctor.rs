use std::process::ExitCode;

use clap::Args;
use engine::config::Config;

use super::{say, settings};
use crate::upkeep::doctor::{self, Finding, Verdict, Wanted};

#[derive(Args)]
pub struct Doctor {
    /// DKIM selector of your mail server; may be repeated. Without it, common ones are tried
    #[arg(long, value_name = "NAME")]
    selector: Vec<String>,
}

impl Doctor {
    pub fn run(&self, config: &Config) -> Result<ExitCode, String> {
        let (mut problems, mut advice, mut printed) = (0, 0, Ok(()));
        let wanted = Wanted { selectors: self.selector.clone() };
        let mut report = |finding: Finding| {
            match finding.verdict {
                Verdict::Fine => {}
                Verdict::Advice => advice += 1,
                Verdict::Problem => problems += 1,
            }
            if printed.is_ok() {
                printed = say(&line(&finding));
            }
        };
        let mut wrong = Vec::new();
        settings::check(config, &mut wrong);
        for why in wrong {
            let remedy = "Correct the setting: the server does not start with it.".to_string();
            report(Finding { verdict: Verdict::Problem, topic: "settings", found: format!("{why}."), remedy });
        }
        doctor::examine(config, &wanted, &mut report);
        printed?;
        match (problems, advice) {
            (0, 0) => say("\nNothing to do.")?,
            (0, _) => say("\nNothing is broken. See the advice above.")?,
            (1, _) => say("\n1 problem: see above what to do.")?,
            (many, _) => say(&format!("\n{many} problems: see above what to do."))?,
        }
        Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// `problem  mail      …`, with what to do on the next line.
fn line(finding: &Finding) -> String {
    let Finding { verdict, topic, found, remedy } = finding;
    let word = match verdict {
        Verdict::Fine => "ok",
        Verdict::Advice => "advice",
        Verdict::Problem => "problem",
    };
    let first = format!("{word:<9}{topic:<10}{found}");
    if remedy.is_empty() { first } else { format!("{first}\n{:19}-> {remedy}", "") }
}
