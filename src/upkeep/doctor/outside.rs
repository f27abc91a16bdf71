use engine::config::Config;
use engine::open;
use mollie::{Failure, Mollie};
use openid::Discovery;
use web::{Method, OutgoingRequest};

use super::Finding;

/// The most bytes of the description of an issuer.
const MAX_DISCOVERY: usize = 256 * 1024;

/// Looks into the store of file contents.
pub async fn files(config: &Config) -> Vec<Finding> {
    if !config.files.starts_with("s3://") {
        return Vec::new();
    }
    let place = &config.files;
    let blobs = match open::open_blobs(config) {
        Ok(blobs) => blobs,
        Err(error) => {
            let found = error.internal.unwrap_or(error.message);
            return vec![Finding::problem("files", found, "Correct the settings files and s3_….")];
        }
    };
    match blobs.check().await {
        Ok(()) => vec![Finding::fine("files", format!("{place} can be read."))],
        Err(error) => vec![Finding::problem(
            "files",
            format!("{place} cannot be read: {error}."),
            "Check files, s3_endpoint, s3_region, s3_access_key and s3_secret_key, and the rights of the key.",
        )],
    }
}

/// Asks Mollie about a payment that does not exist: its answer tells whether the key is valid.
pub async fn mollie(config: &Config) -> Vec<Finding> {
    if config.mollie_key.is_empty() {
        return Vec::new();
    }
    let web = match open::open_web(config) {
        Ok(web) => web,
        Err(error) => return vec![Finding::problem("payments", error.message, "Correct allow_private_addresses.")],
    };
    let found = match Mollie::new(web, &config.mollie_url, &config.mollie_key).payment("tr_doctor").await {
        Ok(_) | Err(Failure::Gone) if config.mollie_key.starts_with("test_") => Finding::advice(
            "payments",
            "Mollie accepts the key, which is a test key: no money moves.",
            "Set mollie_key to the live key when you are done testing.",
        ),
        Ok(_) | Err(Failure::Gone) => Finding::fine("payments", "Mollie accepts the key."),
        Err(Failure::Settings(why)) => {
            Finding::problem("payments", why, "Copy the API key from Mollie's dashboard to mollie_key.")
        }
        Err(failure) => Finding::problem(
            "payments",
            format!("Mollie cannot be asked: {failure}"),
            "Check that this machine can reach Mollie; payments are retried until then.",
        ),
    };
    vec![found]
}

/// Reads the description of the OpenID Connect issuer.
pub async fn single_sign_on(config: &Config) -> Vec<Finding> {
    if config.oidc_issuer.is_empty() {
        return Vec::new();
    }
    let url = Discovery::address(&config.oidc_issuer);
    let remedy =
        "Check oidc_issuer, and that this machine can reach it (allow_private_addresses for one in your network).";
    let web = match open::open_web(config) {
        Ok(web) => web.reading(MAX_DISCOVERY),
        Err(error) => return vec![Finding::problem("sign-in", error.message, remedy)],
    };
    let request = OutgoingRequest { method: Method::GET, url: url.clone(), headers: Vec::new(), body: Vec::new() };
    let found = match web.send(request).await {
        Ok(answer) if answer.status == 200 => match Discovery::read(&config.oidc_issuer, &answer.body) {
            Ok(_) => Finding::fine("sign-in", format!("{} answers.", config.oidc_issuer)),
            Err(why) => Finding::problem("sign-in", format!("{url}: {why}"), remedy),
        },
        Ok(answer) => Finding::problem("sign-in", format!("{url} responds with {}.", answer.status), remedy),
        Err(failure) => Finding::problem("sign-in", format!("{url}: {failure}"), remedy),
    };
    vec![found]
}
