//! Codes of authenticator apps (RFC 6238): six digits, a new code every 30 seconds. A code is accepted for a minute and
//! a half, since clocks differ, and only once.

use engine::clock::Moment;
use engine::error::{Error, Result};
use engine::random;
use engine::secrets::vault::Vault;
use store::Tx;
use totp_rs::{Builder, Secret, Totp};

use crate::people::factor::{self, Factor, Method};

/// Length of a secret, as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;
/// The name of the program in an authenticator app.
const ISSUER: &str = "Kantoor";

/// A new secret, as it is shown once.
#[derive(Clone, Debug)]
pub struct NewSecret {
    /// The secret in base 32, to type it.
    pub secret: String,
    /// The URI for authenticator apps, which its QR code contains.
    pub uri: String,
}

/// Generates a secret for the person with this e-mail address, shown in the app with the name of the business.
pub fn generate(email: &str, business: &str) -> Result<NewSecret> {
    let secret = Secret::from(random::bytes::<SECRET_BYTES>()?);
    let shown = secret.to_base32();
    // A colon separates the two in the label.
    let plain = |text: &str| text.replace(':', " ").chars().take(100).collect::<String>();
    let issuer = format!("{ISSUER} {}", plain(business));
    let totp = Builder::new().with_secret(secret).with_account_name(plain(email)).with_issuer(Some(issuer.trim()));
    let uri = totp.build().and_then(|totp| totp.to_url()).map_err(failed)?;
    Ok(NewSecret { secret: shown, uri })
}

/// Returns the step of a code that this factor shows now, or within 30 seconds before or after.
pub fn step_of(vault: &Vault, factor: &Factor, code: &str, now: Moment) -> Result<Option<i64>> {
    let seconds = u64::try_from(now.0 / 1000).unwrap_or_default();
    let step = opened(vault, factor)?.check(code, seconds);
    Ok(step.and_then(|step| i64::try_from(step).ok()))
}

/// Uses a code of one of these factors; returns whether it was right and not used before.
pub fn use_code(tx: &mut Tx, vault: &Vault, factors: &[Factor], code: &str, now: Moment) -> Result<bool> {
    for factor in factors.iter().filter(|factor| factor.method == Method::Totp) {
        if let Some(step) = step_of(vault, factor, code, now)?
            && factor::use_step(tx, &factor.id, step, now)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn opened(vault: &Vault, factor: &Factor) -> Result<Totp> {
    let secret = vault.open_text(&factor::place(&factor.id), &factor.secret)?;
    let secret = Secret::try_from_base32(secret).map_err(failed)?;
    Builder::new().with_secret(secret).build().map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::internal(format!("the secret of an authenticator app is not usable: {error}"))
}
