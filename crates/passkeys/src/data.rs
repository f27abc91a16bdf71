//! The data that an authenticator signs.

use sha2::{Digest, Sha256};

use crate::{Key, Refused, Site};

/// Somebody touched the authenticator.
const USER_PRESENT: u8 = 0x01;
/// A new key follows.
const HAS_CREDENTIAL: u8 = 0x40;
/// Extensions follow.
const HAS_EXTENSIONS: u8 = 0x80;
/// Longest id of a credential.
const MAX_ID: usize = 1023;

/// The parts of authenticator data.
pub(crate) struct AuthenticatorData<'d> {
    site: &'d [u8],
    flags: u8,
    pub(crate) counter: u32,
    /// The id and the key of a new credential.
    pub(crate) credential: Option<(&'d [u8], &'d [u8])>,
}

impl<'d> AuthenticatorData<'d> {
    pub(crate) fn parse(bytes: &'d [u8]) -> Result<AuthenticatorData<'d>, Refused> {
        let short = Refused("the authenticator data is too short");
        let (site, rest) = bytes.split_at_checked(32).ok_or(short)?;
        let ([flags], rest) = rest.split_first_chunk().ok_or(short)?;
        let (counter, rest) = rest.split_first_chunk().ok_or(short)?;
        let mut credential = None;
        if flags & HAS_CREDENTIAL != 0 {
            // The model of the authenticator.
            let (_, rest) = rest.split_at_checked(16).ok_or(short)?;
            let (length, rest) = rest.split_first_chunk().ok_or(short)?;
            let length = usize::from(u16::from_be_bytes(*length));
            if length == 0 || length > MAX_ID {
                return Err(Refused("the id of the credential has an invalid length"));
            }
            let (id, key) = rest.split_at_checked(length).ok_or(short)?;
            let (_, extensions) = Key::split(key)?;
            // Some authenticators add extensions that nobody asked for; they mean nothing here.
            if flags & HAS_EXTENSIONS == 0 && !extensions.is_empty() {
                return Err(Refused("something follows its key"));
            }
            credential = Some((id, key.get(..key.len() - extensions.len()).unwrap_or(key)));
        }
        Ok(AuthenticatorData { site, flags: *flags, counter: u32::from_be_bytes(*counter), credential })
    }

    /// Rejects data of another site, or without anybody being present.
    pub(crate) fn check(&self, site: &Site) -> Result<(), Refused> {
        if self.site != Sha256::digest(site.id.as_bytes()).as_slice() {
            return Err(Refused("it is the key of another site"));
        }
        if self.flags & USER_PRESENT == 0 {
            return Err(Refused("nobody was present"));
        }
        Ok(())
    }
}
