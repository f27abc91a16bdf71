use clap::Args;
use engine::app::App;
use serde_json::json;

use super::{error_line, say};
use crate::opening;

#[derive(Args)]
pub struct Demo {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub fn run(&self, app: &App) -> Result<(), String> {
        // The demo contains URLs of the server, which runs as another process.
        app.site.serves_at(&app.config.listen);
        let (account, key) = opening::create_demo_account(app, None).map_err(error_line)?;
        if self.json {
            return say(&json!({"account": {"id": account.uid, "name": account.name}, "key": key}).to_string());
        }
        say(&format!(
            "Created account {} ({}) with demo data of half a year.\nIts API key, shown only once: {key}",
            account.uid, account.name
        ))
    }
}
