use clap::Args;
use serde_json::json;

use super::say;
use crate::app::App;
use crate::opening;

#[derive(Args)]
pub struct Demo {
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub fn run(&self, app: &App) -> Result<(), String> {
        // What the demo prints and mails names addresses of the server, which is another process.
        app.site.serves_at(&app.config.listen);
        let (account, key) = opening::create_demo_account(app, None).map_err(|error| error.to_string())?;
        if self.json {
            return say(&json!({"account": {"id": account.uid, "name": account.name}, "key": key}).to_string());
        }
        say(&format!(
            "Made account {} ({}), with half a year of invented records.\nIts key, shown only now: {key}",
            account.uid, account.name
        ))
    }
}
