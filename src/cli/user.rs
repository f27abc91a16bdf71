use clap::Subcommand;
use engine::accounts::Account;
use engine::app::App;
use engine::json::Json;
use engine::record::{Email, INPUT, Kind};
use engine::site::to_open;
use serde_json::json;

use super::{error_line, say};
use crate::people::operator;
use crate::people::role::Role;

#[derive(Subcommand)]
pub enum User {
    /// Invite a user and print the link; or with --owner alone, print a link to set up the account
    Create {
        /// Id of the account; not needed if there is only one
        #[arg(long)]
        account: Option<String>,
        /// E-mail address that the user signs in with
        #[arg(long, required_unless_present = "owner")]
        email: Option<String>,
        /// Name of the user
        #[arg(long, default_value = "")]
        name: String,
        /// Role of the user: owner, member, bookkeeper or reader
        #[arg(long, default_value = "member")]
        role: String,
        /// The same as --role owner
        #[arg(long)]
        owner: bool,
    },
    /// List the users of an account
    List {
        /// Id of the account; not needed if there is only one
        #[arg(long)]
        account: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a link with which a person chooses a new password
    Reset {
        /// E-mail address
        email: String,
    },
    /// Print a link that signs a person in once, without a password or a second factor: for emergencies
    SignInLink {
        /// E-mail address
        email: String,
    },
    /// Remove the second factors and recovery codes of a person who lost them
    RemoveTwoFactor {
        /// E-mail address
        email: String,
    },
    /// End all sessions of a person; takes effect within a second on every node
    EndSessions {
        /// E-mail address
        email: String,
    },
}

impl User {
    pub fn run(&self, app: &App) -> Result<(), String> {
        // Without a public URL, the links are those of the address that the server listens on.
        app.site.serves_at(&app.config.listen);
        let done = match self {
            User::Create { account, email, name, role, owner } => {
                let account = chosen(app, account.as_deref())?;
                let role = if *owner { "owner" } else { role };
                create(app, account, email.as_deref(), name, role)?
            }
            User::List { account, json } => list(app, &chosen(app, account.as_deref())?, *json)?,
            User::Reset { email } => {
                let link = operator::reset(app, email).map_err(error_line)?;
                let where_to = address(app);
                format!("Open this link within an hour to choose a new password. It works once:\n{link}{where_to}")
            }
            User::SignInLink { email } => {
                let link = operator::sign_in_link(app, email).map_err(error_line)?;
                format!(
                    "Open this link within 15 minutes to sign in as {email}. It works once, without a password or a second factor, and is logged:\n{link}{}",
                    address(app)
                )
            }
            User::RemoveTwoFactor { email } => match operator::remove_factors(app, email).map_err(error_line)? {
                0 => format!("{email} has no second factor."),
                1 => "Removed 1 second factor.".to_string(),
                many => format!("Removed {many} second factors."),
            },
            User::EndSessions { email } => match operator::end_sessions(app, email).map_err(error_line)? {
                1 => "Ended 1 session.".to_string(),
                many => format!("Ended {many} sessions."),
            },
        };
        say(&done)
    }
}

/// Returns what to do if the address in a link is not that of the server: only `public_url` is known to be, since a server may have
/// been started with another `listen` than this command.
fn address(app: &App) -> String {
    let listen = to_open(&app.config.listen);
    match app.config.public_url.is_empty() {
        true => format!(
            "\nThe setting public_url is empty, so the link has the address of the setting listen. If the server is reached at another one, replace {listen} in the link, or set public_url."
        ),
        false => String::new(),
    }
}

/// Returns the account with this id, or the only one.
pub(super) fn chosen(app: &App, id: Option<&str>) -> Result<Account, String> {
    if let Some(id) = id.map(str::to_string) {
        return app.store.read_now(move |tx| Account::find(tx, &id)).map_err(error_line);
    }
    let mut all = app.store.read_now(Account::all).map_err(error_line)?;
    match all.len() {
        1 => Ok(all.swap_remove(0)),
        0 => Err("there is no account yet; `kantoor serve` creates one".to_string()),
        many => Err(format!("there are {many} accounts; choose one with --account (see `kantoor account list`)")),
    }
}

fn create(app: &App, account: Account, email: Option<&str>, name: &str, role: &str) -> Result<String, String> {
    let Some(email) = email else {
        let link = operator::set_up(app, account).map_err(error_line)?;
        let where_to = address(app);
        return Ok(format!("Open this link within a day to sign in as an owner. It works once:\n{link}{where_to}"));
    };
    let parsed = Email::from_json(&Json::Text(email.to_string()), &INPUT);
    let email = parsed.map_err(|wrong| format!("--email {email}: {}", wrong.message))?.0;
    let unknown = || format!("--role {role}: expected one of {}", Role::WIRE.join(", "));
    let role = Role::from_wire(role).ok_or_else(unknown)?;
    let name = if name.trim().is_empty() { email.split('@').next().unwrap_or_default() } else { name.trim() };
    let link = operator::invite(app, account, &email, name, role).map_err(error_line)?;
    Ok(format!("Invited {email}. The link works once, for seven days:\n{link}{}", address(app)))
}

fn list(app: &App, account: &Account, json: bool) -> Result<String, String> {
    let users = operator::list(app, account.number).map_err(error_line)?;
    if json {
        let rows = users.iter().map(|user| {
            json!({
                "id": user.base.id, "email": user.email.0, "name": user.name, "role": user.role.wire(),
                "status": user.status.wire(), "created_at": user.base.created_at.to_string(),
            })
        });
        return Ok(json!(rows.collect::<Vec<_>>()).to_string());
    }
    let line = |user: &crate::people::user::User| {
        format!("{}  {}  {}  {}  {}", user.base.id, user.email.0, user.role.wire(), user.status.wire(), user.name)
    };
    Ok(users.iter().map(line).collect::<Vec<_>>().join("\n"))
}
