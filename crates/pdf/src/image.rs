//! Images are read before the document is made, so that one that is broken is left out instead of failing it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use typst::comemo::Track;
use typst::foundations::Bytes;
use typst::visualize::{ImageFormat, RasterFormat, RasterImage, SvgImage, VectorFormat};

use crate::Input;
use crate::drawn::Image;
use crate::world::{DocumentWorld, TemplateEnv};

/// The images that can be used, and the names of the others.
pub(crate) fn usable(desk: &TemplateEnv, images: &[(&'static str, Vec<u8>)]) -> (Vec<Image>, Vec<&'static str>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (name, bytes) in images {
        // Decoders are for bytes that nobody has seen before.
        match catch_unwind(AssertUnwindSafe(|| readable(desk, bytes))) {
            Ok(Some(bytes)) => good.push(Image { name, bytes }),
            _ => bad.push(*name),
        }
    }
    (good, bad)
}

/// The image as the compiler gets it, if it can read it. It remembers the pixels that it decodes here.
fn readable(desk: &TemplateEnv, bytes: &[u8]) -> Option<Bytes> {
    match ImageFormat::detect(bytes) {
        Some(ImageFormat::Raster(RasterFormat::Exchange(_))) => {
            let drawn = desk.drawn.of(bytes)?;
            let Some(ImageFormat::Raster(RasterFormat::Exchange(format))) = ImageFormat::detect(&drawn) else {
                return None;
            };
            RasterImage::plain(drawn.clone(), format).is_ok().then_some(drawn)
        }
        // A zipped SVG may be any size once it is open. Links to other files are refused by the world.
        Some(ImageFormat::Vector(VectorFormat::Svg)) if !bytes.starts_with(&[0x1f, 0x8b]) => {
            let sheet = DocumentWorld::new(desk, Vec::new(), Input::default());
            let world: &dyn typst::World = &sheet;
            let bytes = Bytes::new(bytes.to_vec());
            SvgImage::with_fonts_images(bytes.clone(), world.track(), &[], None).is_ok().then_some(bytes)
        }
        // A PDF inside a PDF/A is not allowed.
        _ => None,
    }
}
