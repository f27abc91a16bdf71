//! Images as they are passed to the compiler.

use std::sync::{Mutex, PoisonError};

use typst::foundations::Bytes;

use crate::redraw::redraw;

/// An image that can be used.
#[derive(Clone)]
pub(crate) struct Image {
    pub(crate) name: &'static str,
    pub(crate) bytes: Bytes,
}

/// The number of cached images.
const KEPT: usize = 8;

/// A cache of recently re-encoded images, by the hash of the original: a logo is on every document.
#[derive(Default)]
pub(crate) struct Drawn(Mutex<Vec<(u128, Option<Bytes>)>>);

impl Drawn {
    pub(crate) fn of(&self, bytes: &[u8]) -> Option<Bytes> {
        let hash = typst::utils::hash128(bytes);
        let list = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, drawn)) = list().iter().find(|(known, _)| *known == hash) {
            return drawn.clone();
        }
        let drawn = redraw(bytes).map(Bytes::new);
        let mut list = list();
        list.truncate(KEPT - 1);
        list.insert(0, (hash, drawn.clone()));
        drawn
    }
}
