//! What the operator of the server does about keys, on the command line.

use engine::accounts::{self, Account, NewKey};
use engine::app::App;
use engine::context::Ctx;
use engine::error::{Code, Error, Result};
use engine::record::When;
use engine::records;
use store::Tx;
use web::Network;

use crate::keys::values::{Networks, Scopes};
use crate::keys::{ApiKey, end, issue};

/// Creates a key with this secret; returns its id.
pub fn create(app: &App, account: Account, secret: &str, new: &NewKey, networks: &[Network]) -> Result<String> {
    let known = accounts::scopes();
    if let Some(odd) = new.scopes.iter().find(|scope| !known.contains(scope)) {
        let message = format!("Unknown scope '{odd}'. Choose from: {}.", known.join(", "));
        return Err(Error::new(Code::ValidationFailed, message));
    }
    if new.scopes.is_empty() {
        return Err(Error::new(Code::ValidationFailed, "A key requires at least one scope."));
    }
    let (secret, new) = (secret.to_string(), ApiKey { allowed_networks: Networks(networks.to_vec()), ..key(new) });
    let (number, caller) = (account.number, app.acting(account, "operator"));
    app.store.write_now(number, move |tx| {
        let ctx = caller.writing(tx)?;
        let mut key = new.clone();
        issue(tx, &ctx, &mut key, &secret)?;
        Ok(key.base.id)
    })
}

/// Creates the first key of an account.
pub(crate) fn create_first(tx: &mut Tx, ctx: &Ctx, secret: &str) -> Result<()> {
    let new = NewKey { name: "first key".to_string(), scopes: vec!["*".to_string()], expires_at: None };
    issue(tx, ctx, &mut key(&new), secret)
}

fn key(new: &NewKey) -> ApiKey {
    ApiKey {
        name: new.name.clone(),
        scopes: Scopes(new.scopes.clone()),
        expires_at: When(new.expires_at),
        ..ApiKey::default()
    }
}

/// Revokes a key.
pub fn revoke(app: &App, id: &str) -> Result<()> {
    let own = id.to_string();
    let account = app.store.read_now(move |tx| {
        let sql = "SELECT account_id FROM keys WHERE id = $1";
        tx.first(sql, &[(&own).into()], |row| Ok::<_, Error>(row.int(0)?))
    })?;
    let account = account.ok_or_else(|| Error::new(Code::NotFound, format!("No key has the id {id}.")))?;
    let (caller, id) = (app.acting_in(account, "operator")?, id.to_string());
    app.store.write_now(account, move |tx| {
        let ctx = caller.writing(tx)?;
        let key = records::find(tx, &ctx, &id)?;
        end(tx, &ctx, key).map(drop)
    })
}
