//! Images as the compiler gets them.

use std::sync::{Mutex, PoisonError};

use typst::foundations::Bytes;

use crate::redraw::redraw;

/// An image that can be used.
#[derive(Clone)]
pub(crate) struct Image {
    pub(crate) name: &'static str,
    pub(crate) bytes: Bytes,
}

/// For how many pictures it is remembered how they were drawn.
const KEPT: usize = 8;

/// The pictures that were drawn anew lately, by the hash of what they were drawn from: a logo is on every document.
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
