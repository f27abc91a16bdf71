//! Images are decoded before typesetting, so that a broken one is left out instead of failing the document.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use typst::comemo::Track;
use typst::foundations::Bytes;
use typst::visualize::{ImageFormat, RasterFormat, RasterImage, SvgImage, VectorFormat};

use crate::Input;
use crate::redraw::redraw;
use crate::world::{DocumentWorld, TemplateEnv};

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
    fn of(&self, bytes: &[u8]) -> Option<Bytes> {
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

/// The images that can be used, and the names of the others.
pub(crate) fn usable(desk: &TemplateEnv, images: &[(&'static str, Vec<u8>)]) -> (Vec<Image>, Vec<&'static str>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (name, bytes) in images {
        // Decoders handle untrusted bytes and may panic.
        match catch_unwind(AssertUnwindSafe(|| readable(desk, bytes))) {
            Ok(Some(bytes)) => good.push(Image { name, bytes }),
            _ => bad.push(*name),
        }
    }
    (good, bad)
}

/// Returns the image for the compiler, if it can be decoded. The compiler caches the pixels that it decodes here.
fn readable(desk: &TemplateEnv, bytes: &[u8]) -> Option<Bytes> {
    match ImageFormat::detect(bytes) {
        Some(ImageFormat::Raster(RasterFormat::Exchange(_))) => {
            let drawn = desk.drawn.of(bytes)?;
            let Some(ImageFormat::Raster(RasterFormat::Exchange(format))) = ImageFormat::detect(&drawn) else {
                return None;
            };
            RasterImage::plain(drawn.clone(), format).is_ok().then_some(drawn)
        }
        // A compressed SVG can have any size when unpacked. Links to other files are rejected by the world.
        Some(ImageFormat::Vector(VectorFormat::Svg)) if !bytes.starts_with(&[0x1f, 0x8b]) => {
            let sheet = DocumentWorld::new(desk, Vec::new(), Input::default());
            let world: &dyn typst::World = &sheet;
            let bytes = Bytes::new(bytes.to_vec());
            SvgImage::with_fonts_images(bytes.clone(), world.track(), &[], None).is_ok().then_some(bytes)
        }
        // PDF/A does not allow embedded PDF images.
        _ => None,
    }
}
