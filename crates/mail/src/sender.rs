//! Sends messages and reports the outcome.

use std::fmt;

use crate::address;
use crate::connection::Connection;
use crate::failure::{FORBIDDEN, Failure};
use crate::folder::Folder;
use crate::message::check_lines;
use crate::settings::Route;
use crate::smtp::{Letter, Smtp};

/// An accepted message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The server's reply, which often contains its own id of the message; or the name of the file.
    pub response: String,
}

/// Sends mail; created once and shared by threads.
pub struct Sender {
    way: Way,
}

enum Way {
    Smtp(Box<Smtp>),
    Folder(Folder),
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl Sender {
    /// Reads the certificates without connecting: see [`Sender::check`].
    pub fn new(route: Route) -> Result<Sender, String> {
        let way = match route {
            Route::Smtp(settings) => Way::Smtp(Box::new(Smtp::new(settings)?)),
            Route::Folder(path) => Way::Folder(Folder::new(path)),
        };
        Ok(Sender { way })
    }

    /// Sends a finished message (see [`Mail::to_bytes`](crate::Mail::to_bytes)) to ONE recipient, whatever its headers
    /// say. `from` receives the bounces; empty for none, as for automatic replies.
    ///
    /// In a folder, the message is one file for all its recipients, named after its message id.
    pub fn deliver(&self, from: &str, recipient: &str, message: &[u8]) -> Result<Receipt, Failure> {
        self.deliver_if(from, recipient, message, &|| true)
    }

    /// [`Sender::deliver`] if `permit` still allows it just before the mail is handed over; otherwise it is temporarily
    /// rejected. Until then the mail server has no mail, however much of it was transmitted.
    pub fn deliver_if(
        &self,
        from: &str,
        recipient: &str,
        message: &[u8],
        permit: &dyn Fn() -> bool,
    ) -> Result<Receipt, Failure> {
        let parsed = |email: &str| address::parse(email).map(|address| address.to_string());
        let letter = Letter {
            from: if from.is_empty() { String::new() } else { parsed(from).map_err(Failure::Never)? },
            recipient: parsed(recipient).map_err(Failure::Never)?,
            message,
            permit,
        };
        check_lines(message).map_err(Failure::Never)?;
        let response = match &self.way {
            Way::Smtp(smtp) => smtp.deliver(&letter)?,
            Way::Folder(_) if !permit() => return Err(Failure::Later(FORBIDDEN.into())),
            Way::Folder(folder) => folder.write(message)?,
        };
        Ok(Receipt { response })
    }

    /// Connects, greets and authenticates without sending anything; or checks whether the folder is writable.
    pub fn check(&self) -> Result<(), String> {
        match &self.way {
            Way::Smtp(smtp) => smtp.connect().map(Connection::quit).map_err(|failure| failure.to_string()),
            Way::Folder(folder) => folder.check().map_err(|e| format!("the folder cannot be written: {e}")),
        }
    }
}
