//! The mail transport of the settings: a mail server, or a folder.

use std::time::Duration;

use engine::config::Config;
use engine::error::{Code, Error, Result};
use engine::services::Services;
use mail::{Route, Security, Sender, SmtpSettings};

/// Opens the mail transport of the settings.
pub(crate) fn open(config: &Config, _: &str, services: &mut Services) -> Result<()> {
    services.add(sender(config)?);
    Ok(())
}

/// Returns the mail transport of the settings, which has not connected yet.
pub(crate) fn sender(config: &Config) -> Result<Sender> {
    let route = if config.smtp_host.is_empty() {
        Route::Folder(config.data.join("mail"))
    } else {
        let mut settings = SmtpSettings::new(&config.smtp_host, config.smtp_port);
        settings.security = match config.smtp_security.as_str() {
            "tls" => Security::Tls,
            "starttls" => Security::StartTls,
            "none" => Security::None,
            other => {
                let message = format!("smtp_security is '{other}', but must be starttls, tls or none.");
                return Err(Error::new(Code::Unavailable, message));
            }
        };
        settings.user.clone_from(&config.smtp_user);
        settings.password.clone_from(&config.smtp_password);
        settings.timeout = Duration::from_secs(config.smtp_timeout_seconds);
        settings.ca_file = (!config.smtp_ca_file.is_empty()).then(|| config.smtp_ca_file.clone().into());
        Route::Smtp(settings)
    };
    Sender::new(route).map_err(|error| Error::new(Code::Unavailable, format!("Mail cannot be sent: {error}.")))
}
