//! API keys: what programs send to call the API. Authentication reads them in the engine (`accounts::Key`); here they are
//! created, changed, rotated and revoked.

pub mod old;
pub mod operator;
mod values;

use engine::accounts;
use engine::call::{Answer, Call};
use engine::context::Ctx;
use engine::error::{Code, Error, FieldCode, Result, violation};
use engine::input::Input;
use engine::record::{
    ACTED, ALL, Body, COMPUTED, CREATED, DETAIL, INPUT, Model, NOWHERE, REQUIRED, Rules, UPDATED, When,
};
use engine::records::{self, Work};
use engine::registry::check_confirmed;
use engine::resource::{Method, RequestBody, Resource, Returns, Verb};
use engine::tables::Logged;
use engine::text::check_name;
use engine::{input, record};
use store::Tx;

use crate::keys::values::{Hash, Networks, Scopes};

/// The first characters of a secret, which are shown.
const HINT: usize = 9;
/// Maximum number of keys of an account that work: each has a rate limit of its own.
const MAX_KEYS: i64 = 1000;
/// How many old secrets of a key are kept.
const MAX_OLD: i64 = 10;
/// How long the hash of an old secret is kept, so that a caller that still uses it is told why it no longer works.
const OLD_KEPT_SECONDS: i64 = 30 * 24 * 3600;

record! {
    /// An API key. Programs send its secret to call the API.
    pub struct ApiKey = "api_key" in "keys", created_at: ALL;

    /// Name that tells what the key is for.
    name: String = REQUIRED.plain_name().names().sort().example("\"Website\"");
    /// What the key may do: `<area>.read`, `<area>.write`, or `*` for everything. You can only give scopes that you have
    /// yourself.
    scopes: Scopes = REQUIRED.create_only().example("[\"products.read\"]");
    /// Networks or IP addresses that the key can be used from, in CIDR notation, IPv4 or IPv6. If it is empty, the key can
    /// be used from everywhere.
    allowed_networks: Networks = INPUT.example("[\"203.0.113.0/24\", \"2001:db8::/32\"]");
    /// When the key expires, on the machine's clock; `null` for never.
    expires_at: When = INPUT.nullable().example("\"2099-01-01T00:00:00Z\"");
    /// The first characters of the secret.
    hint: String = COMPUTED;
    /// When the key was last used, accurate to about a minute; `null` if it never was.
    last_used_at: When = COMPUTED.nullable();
    /// When the key was revoked.
    revoked_at: When = COMPUTED.nullable();
    /// Until when the previous secret works, if the key was rotated.
    old_secret_until: When = COMPUTED.nullable();
    /// The secret. It is shown only when it is created.
    secret: String = Rules { sent_only: true, ..COMPUTED.shown(CREATED.and(ACTED)) };
    /// The hash of the secret.
    hash: Hash = COMPUTED.shown(NOWHERE);
}

impl Model for ApiKey {
    fn before_save(&mut self, _: &mut Tx, _: &Ctx, before: Option<&Self>) -> Result<()> {
        if before.is_none_or(|before| before.name != self.name) {
            check_name(&self.name).map_err(|wrong| Error::field("name", wrong))?;
        }
        Ok(())
    }
}

input! {
    /// The overlap of a rotated key.
    pub struct Rotate;

    /// For how many seconds the old secret also works.
    overlap_seconds: i64 = INPUT.between(0, 604_800).default("86400").example("86400");
}

impl Body for Rotate {}

/// The resource of keys.
pub(crate) fn resource() -> Resource {
    Resource::of::<ApiKey>("API keys", "keys", &[])
        .at("/v1/api-keys")
        .guarded()
        // Recorded once a minute, for many keys together.
        .logged(Logged::Except(&["last_used_at"]))
        .list::<ApiKey>()
        .extension()
        .verb(Verb::Create, create)
        .extension()
        .get::<ApiKey>()
        .extension()
        .verb(Verb::Patch, patch)
        .extension()
        .route(Method::Post, "/{id}/rotate", "Rotate the secret, with an overlap for the old one", rotate)
        .body::<Rotate>(RequestBody::Maybe)
        .returns(Returns::Item(ACTED))
        .extension()
        .route(Method::Post, "/{id}/revoke", "Revoke a key, within a second on every node", revoke)
        .returns(Returns::Item(DETAIL))
        .extension()
}

/// `POST /v1/api-keys`
fn create(call: Call) -> Result<Work> {
    let input: Input<ApiKey> = input::create(&call)?;
    let secret = accounts::new_secret()?;
    Ok(Box::new(move |tx, ctx| {
        check_confirmed(tx, ctx)?;
        let mut key = input.record();
        check_scopes(ctx, &key, "You cannot give")?;
        check_limits(ctx, None, &key)?;
        issue(tx, ctx, &mut key, &secret)?;
        key.secret.clone_from(&secret);
        Ok(Answer::created(ctx, &key, CREATED).with_texts("warnings", &input.warnings))
    }))
}

/// Saves a new key with this secret, of which only the hash is stored.
pub(crate) fn issue(tx: &mut Tx, ctx: &Ctx, key: &mut ApiKey, secret: &str) -> Result<()> {
    check_room(tx, ctx)?;
    key.hash = Hash(accounts::hash(secret));
    key.hint = secret[..HINT].to_string();
    records::add(tx, ctx, key)
}

/// Rejects another key in an account that has the maximum. Keys that were revoked or have expired do not count.
fn check_room(tx: &mut Tx, ctx: &Ctx) -> Result<()> {
    let table = format!("keys{}", tx.dialect().indexed_by("keys_live"));
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM {table}
         WHERE account_id = $1 AND revoked_at = 0 AND (expires_at = 0 OR expires_at > $2) LIMIT {MAX_KEYS}) AS live"
    );
    if tx.int(&sql, &[ctx.account.into(), ctx.machine_now.0.into()])? < MAX_KEYS {
        return Ok(());
    }
    let message = format!("An account may have at most {MAX_KEYS} API keys that work. Revoke one first.");
    Err(Error::new(Code::LimitReached, message))
}

/// `PATCH /v1/api-keys/{id}`
fn patch(call: Call) -> Result<Work> {
    let input: Input<ApiKey> = input::patch(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before = find_live(tx, ctx, &call)?;
        let mut key = before.clone();
        input.merge_into(&mut key);
        check_limits(ctx, Some(&before), &key)?;
        records::change(tx, ctx, &before, &mut key, "updated")?;
        Ok(Answer::record(ctx, &key, UPDATED).with_texts("warnings", &input.warnings))
    }))
}

/// `POST /v1/api-keys/{id}/rotate`
fn rotate(call: Call) -> Result<Work> {
    let input: Input<Rotate> = input::create(&call)?;
    let secret = accounts::new_secret()?;
    Ok(Box::new(move |tx, ctx| {
        let before = find_live(tx, ctx, &call)?;
        check_limits(ctx, Some(&before), &before)?;
        let mut key = before.clone();
        let overlap = input.values().overlap_seconds;
        let until = ctx.machine_now.plus_seconds(overlap);
        keep_old_secret(tx, ctx, &before, until)?;
        key.hash = Hash(accounts::hash(&secret));
        key.hint = secret[..HINT].to_string();
        key.old_secret_until = When((overlap > 0).then_some(until));
        records::change(tx, ctx, &before, &mut key, "rotated")?;
        key.secret.clone_from(&secret);
        Ok(Answer::record(ctx, &key, ACTED).with_texts("warnings", &input.warnings))
    }))
}

/// Lets the secret of a key work until a moment, and those before it no longer than that.
fn keep_old_secret(tx: &mut Tx, ctx: &Ctx, key: &ApiKey, until: engine::clock::Moment) -> Result<()> {
    let (account, id, vault) = (ctx.account, &key.base.id, &ctx.site.vault);
    let mut signed = old::signed(tx, vault, account, id)?;
    let table = format!("old_key_secrets{}", tx.dialect().indexed_by("old_key_secrets_key"));
    let sql = format!("DELETE FROM {table} WHERE account_id = $1 AND key_id = $2 AND until < $3");
    let oldest = ctx.machine_now.plus_seconds(-OLD_KEPT_SECONDS);
    tx.execute(&sql, &[account.into(), id.into(), oldest.0.into()])?;
    let sql = format!("UPDATE {table} SET until = $1 WHERE account_id = $2 AND key_id = $3 AND until > $1");
    tx.execute(&sql, &[until.0.into(), account.into(), id.into()])?;
    let sql = "INSERT INTO old_key_secrets (hash, account_id, key_id, until) VALUES ($1, $2, $3, $4)";
    tx.execute(sql, &[key.hash.0.as_slice().into(), account.into(), id.into(), until.0.into()])?;
    let sql = format!(
        "DELETE FROM {table} WHERE account_id = $1 AND key_id = $2 AND hash NOT IN
         (SELECT hash FROM {table} WHERE account_id = $1 AND key_id = $2 ORDER BY until DESC, hash LIMIT {MAX_OLD})"
    );
    tx.execute(&sql, &[account.into(), id.into()])?;
    signed.push(key.hash.0.to_vec());
    old::sign(tx, vault, account, id, &signed)
}

/// `POST /v1/api-keys/{id}/revoke`
fn revoke(call: Call) -> Result<Work> {
    let warnings = input::nothing(&call)?;
    Ok(Box::new(move |tx, ctx| {
        let before: ApiKey = records::find_to_change(tx, ctx, &call)?;
        check_scopes(ctx, &before, TOO_STRONG)?;
        check_within(ctx, &before)?;
        let key = end(tx, ctx, before)?;
        Ok(Answer::record(ctx, &key, DETAIL).with_texts("warnings", &warnings))
    }))
}

/// Revokes a key; one that was revoked before stays as it is.
fn end(tx: &mut Tx, ctx: &Ctx, before: ApiKey) -> Result<ApiKey> {
    if before.revoked_at.0.is_some() {
        return Ok(before);
    }
    let mut key = before.clone();
    key.revoked_at = When(Some(ctx.machine_now));
    let table = format!("old_key_secrets{}", tx.dialect().indexed_by("old_key_secrets_key"));
    let sql = format!("DELETE FROM {table} WHERE account_id = $1 AND key_id = $2");
    tx.execute(&sql, &[ctx.account.into(), (&key.base.id).into()])?;
    records::change(tx, ctx, &before, &mut key, "revoked")?;
    Ok(key)
}

/// Returns the key of the path, if the caller may change it.
fn find_live(tx: &mut Tx, ctx: &Ctx, call: &Call) -> Result<ApiKey> {
    check_confirmed(tx, ctx)?;
    let key: ApiKey = records::find_to_change(tx, ctx, call)?;
    check_scopes(ctx, &key, TOO_STRONG)?;
    check_within(ctx, &key)?;
    if key.revoked_at.0.is_some() {
        return Err(Error::new(Code::InvalidTransition, "The key has been revoked. Create a new one."));
    }
    Ok(key)
}

const TOO_STRONG: &str = "You cannot change a key with";

/// Rejects a caller who lacks a scope of the key: nobody can give, change or take away what they do not have.
fn check_scopes(ctx: &Ctx, key: &ApiKey, cannot: &str) -> Result<()> {
    let missing = key.scopes.0.iter().filter(|scope| !ctx.may(scope)).map(|scope| format!("'{scope}'"));
    let missing: Vec<String> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("{cannot} scopes that you do not have yourself: {}.", missing.join(", "));
    Err(Error::new(Code::Forbidden, message))
}

/// Rejects a caller whose own key has limits that this key does not have: such a key is stronger.
fn check_within(ctx: &Ctx, key: &ApiKey) -> Result<()> {
    let Some(own) = ctx.key.as_ref().filter(|own| own.session.is_empty() && own.id != key.base.id) else {
        return Ok(());
    };
    let lasts_longer = own.expires_at.0 != 0 && key.expires_at.0.is_none_or(|end| end > own.expires_at);
    let covers = |network: &web::Network| own.networks.iter().any(|own| own.covers(network));
    let reaches_further =
        !own.networks.is_empty() && (key.allowed_networks.0.is_empty() || !key.allowed_networks.0.iter().all(covers));
    if lasts_longer || reaches_further {
        let message =
            "Your own key expires earlier or is bound to fewer networks than this key, so you cannot change it.";
        return Err(Error::new(Code::Forbidden, message));
    }
    Ok(())
}

/// Checks the expiry and the networks of a new or changed key. A key that expires or is bound to networks cannot create or
/// change one beyond that: it would be a way out of its own limits.
fn check_limits(ctx: &Ctx, before: Option<&ApiKey>, key: &ApiKey) -> Result<()> {
    let expires = key.expires_at.0;
    let is_new = before.is_none_or(|before| before.expires_at != key.expires_at);
    if is_new && expires.is_some_and(|end| end <= ctx.machine_now) {
        return Err(Error::field("expires_at", violation(FieldCode::OutOfRange, "must be in the future")));
    }
    let Some(own) = ctx.key.as_ref().filter(|own| own.session.is_empty()) else { return Ok(()) };
    if own.secret_until.0 != 0 {
        let message = "You use a secret that was replaced. Use the new one to create or change keys.";
        return Err(Error::new(Code::Forbidden, message));
    }
    if own.expires_at.0 != 0 && expires.is_none_or(|end| end > own.expires_at) {
        let message = format!("Your own key expires at {}, so expires_at cannot be later.", own.expires_at);
        return Err(Error::new(Code::Forbidden, message));
    }
    let wider = key.allowed_networks.0.iter().find(|one| !own.networks.iter().any(|own| own.covers(one)));
    if own.networks.is_empty() || (wider.is_none() && !key.allowed_networks.0.is_empty()) {
        return Ok(());
    }
    let own: Vec<String> = own.networks.iter().map(ToString::to_string).collect();
    let message = format!("Your own key is bound to {}, so allowed_networks must be within that.", own.join(", "));
    Err(Error::new(Code::Forbidden, message))
}
