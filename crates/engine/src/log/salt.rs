//! Random salts. A call of the system for each row would take longer than its hash, so they come from a buffer.

use std::cell::RefCell;

use crate::error::Result;
use crate::random;

/// Length of a salt.
pub(super) const LENGTH: usize = 16;
/// Salts per call of the system.
const TOGETHER: usize = 64;

struct Buffer {
    bytes: [u8; LENGTH * TOGETHER],
    used: usize,
}

thread_local! {
    static BUFFER: RefCell<Buffer> = const { RefCell::new(Buffer { bytes: [0; LENGTH * TOGETHER], used: LENGTH * TOGETHER }) };
}

/// Returns a salt that was never used.
pub(super) fn next() -> Result<[u8; LENGTH]> {
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.used == buffer.bytes.len() {
            random::fill(&mut buffer.bytes)?;
            buffer.used = 0;
        }
        let mut salt = [0; LENGTH];
        let own = &mut buffer.bytes[buffer.used..buffer.used + LENGTH];
        salt.copy_from_slice(own);
        // A salt that was erased from the log must not remain in memory.
        own.fill(0);
        buffer.used += LENGTH;
        Ok(salt)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_salt_is_used_twice() {
        let salts: HashSet<[u8; LENGTH]> = (0..3 * TOGETHER).map(|_| next().unwrap()).collect();
        assert_eq!(salts.len(), 3 * TOGETHER);
        assert!(!salts.contains(&[0; LENGTH]));
    }
}
