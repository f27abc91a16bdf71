//! Images are read before the document is made, so that one that is broken is left out instead of failing it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use typst::comemo::Track;
use typst::foundations::Bytes;
use typst::visualize::{ImageFormat, RasterFormat, RasterImage, SvgImage, VectorFormat};

use crate::Input;
use crate::world::{Desk, Sheet};

/// An image that can be used.
#[derive(Clone)]
pub(crate) struct Image {
    pub(crate) name: &'static str,
    pub(crate) bytes: Bytes,
}

/// The images that can be used, and the names of the others.
pub(crate) fn usable(desk: &Desk, images: &[(&'static str, Vec<u8>)]) -> (Vec<Image>, Vec<&'static str>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (name, bytes) in images {
        let bytes = Bytes::new(bytes.clone());
        // Decoders are for bytes that nobody has seen before.
        match catch_unwind(AssertUnwindSafe(|| readable(desk, &bytes))) {
            Ok(true) => good.push(Image { name, bytes }),
            _ => bad.push(*name),
        }
    }
    (good, bad)
}

/// Whether the compiler can read it. It remembers the pixels that it decodes here.
fn readable(desk: &Desk, bytes: &Bytes) -> bool {
    match ImageFormat::detect(bytes) {
        Some(ImageFormat::Raster(RasterFormat::Exchange(format))) => RasterImage::plain(bytes.clone(), format).is_ok(),
        // A zipped SVG may be any size once it is open. Links to other files are refused by the world.
        Some(ImageFormat::Vector(VectorFormat::Svg)) if !bytes.starts_with(&[0x1f, 0x8b]) => {
            let sheet = Sheet::new(desk, Vec::new(), Input::default());
            let world: &dyn typst::World = &sheet;
            SvgImage::with_fonts_images(bytes.clone(), world.track(), &[], None).is_ok()
        }
        // A PDF inside a PDF/A is not allowed.
        _ => false,
    }
}
