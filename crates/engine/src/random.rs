//! Random bytes from the operating system, for keys, tokens and salts.

use crate::error::{Error, Result};

/// Fills a buffer.
pub fn fill(buffer: &mut [u8]) -> Result<()> {
    getrandom::fill(buffer).map_err(|error| Error::internal(format!("cannot generate random numbers: {error}")))
}

/// Returns this many bytes.
pub fn bytes<const LENGTH: usize>() -> Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    fill(&mut bytes)?;
    Ok(bytes)
}
