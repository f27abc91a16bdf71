use clap::Subcommand;
use engine::app::App;
use engine::error::Error;
use serde_json::json;

use super::{error_line, say};
use crate::settings::email_domain::{Verifier, check};

#[derive(Subcommand)]
pub enum Domain {
    /// List the e-mail domains of all accounts
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Verify an e-mail domain without a TXT record
    Verify {
        /// The domain, such as mail.example.com, or its id
        domain: String,
    },
    /// Revoke the verification of an e-mail domain; a TXT record verifies it again
    Revoke {
        /// The domain, such as mail.example.com, or its id
        domain: String,
    },
}

impl Domain {
    pub fn run(&self, app: &App) -> Result<(), String> {
        match self {
            Domain::List { json } => list(app, *json),
            Domain::Verify { domain } => {
                let host = check::decide(app, domain, true).map_err(error_line)?;
                say(&format!("Verified {host}."))
            }
            Domain::Revoke { domain } => {
                let host = check::decide(app, domain, false).map_err(error_line)?;
                say(&format!("Revoked the verification of {host}."))
            }
        }
    }
}

fn list(app: &App, json: bool) -> Result<(), String> {
    let sql = "SELECT email_domains.id, host, status, verified_by, txt_value, accounts.uid, accounts.name
               FROM email_domains JOIN accounts ON accounts.id = account_id ORDER BY host, email_domains.id";
    let rows = app.store.read_now(|tx| {
        tx.all(sql, &[], |row| {
            let text = |column: usize| row.text(column).map(str::to_string);
            Ok::<_, Error>([text(0)?, text(1)?, text(2)?, text(3)?, text(4)?, text(5)?, text(6)?])
        })
    });
    let rows = rows.map_err(error_line)?;
    if json {
        let rows = rows.iter().map(|[id, host, status, by, txt, account, _]| {
            json!({"id": id, "host": host, "status": status, "verified_by": by, "txt_value": txt, "account": account})
        });
        return say(&json!(rows.collect::<Vec<_>>()).to_string());
    }
    for [id, host, status, by, _, account, name] in rows {
        let by = if by == Verifier::Nobody.wire() { String::new() } else { format!(" by {by}") };
        say(&format!("{id}  {host}  {status}{by}  {account}  {name}"))?;
    }
    Ok(())
}
