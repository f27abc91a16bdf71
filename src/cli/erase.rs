use clap::Args;
use engine::accounts::Account;
use engine::app::App;
use engine::log::erasing;

use super::{error_line, grouped, say};

#[derive(Args)]
pub struct Erase {
    /// The id of the account
    #[arg(long)]
    account: String,
    /// The type of the record, as entity_type of the change feed names it: client, task, …
    kind: String,
    /// The id of the record, which was deleted before
    id: String,
    /// Erase: without this, the command says what it would erase
    #[arg(long)]
    yes: bool,
}

impl Erase {
    /// The digests of the erased data remain, so the log can still be verified. What is erased cannot be restored.
    pub fn run(&self, app: &App) -> Result<(), String> {
        let uid = self.account.clone();
        let account = app.store.read_now(move |tx| Account::find(tx, &uid)).map_err(error_line)?;
        let (number, kind, id) = (account.number, self.kind.clone(), self.id.clone());
        if !self.yes {
            // The same refusals as with `--yes`.
            let counted = app.store.read_now(move |tx| erasing::count(tx, number, &kind, &id));
            let lines = grouped(counted.map_err(error_line)?);
            return Err(format!(
                "the log has {lines} lines about this record; erasing their data cannot be undone: add --yes to do it"
            ));
        }
        let caller = app.acting(account, "operator");
        let erased = app.store.write_now(number, move |tx| {
            let ctx = caller.writing(tx)?;
            erasing::erase(tx, &ctx, &kind, &id)
        });
        let count = erased.map_err(error_line)?;
        say(&format!("Erased the data of {} log lines. The log can still be verified.", grouped(count)))
    }
}
