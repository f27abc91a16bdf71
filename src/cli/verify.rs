use std::process::ExitCode;

use clap::Args;

use super::say;
use crate::accounts::Account;
use crate::app::App;
use crate::error::Error;
use crate::log::{self, Verdict};

#[derive(Args)]
pub struct Verify {
    /// Only this account
    #[arg(long)]
    account: Option<String>,
}

impl Verify {
    pub fn run(&self, app: &App) -> Result<ExitCode, String> {
        let accounts = match self.account.clone() {
            Some(uid) => app.store.read_now(move |tx| Account::find(tx, &uid).map(|account| vec![account])),
            None => app.store.read_now(Account::all),
        };
        let mut code = ExitCode::SUCCESS;
        for account in accounts.map_err(|error: Error| error.to_string())? {
            let number = account.number;
            let verdict = app.store.read_now(move |tx| log::verify(tx, number));
            match verdict.map_err(|error: Error| error.to_string())? {
                Verdict::Whole { rows, head } => {
                    say(&format!("{}  whole: {rows} entries, ending in {head}", account.uid))?;
                }
                Verdict::Broken { seq, at, why } => {
                    say(&format!("{}  BROKEN at entry {seq} ({at}): {why}", account.uid))?;
                    code = ExitCode::FAILURE;
                }
            }
        }
        Ok(code)
    }
}
