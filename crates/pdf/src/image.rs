//! Images are decoded before typesetting, so that a broken one is left out instead of failing the document.

use std::panic::{AssertUnwindSafe, catch_unwind};

use typst::comemo::Track;
use typst::foundations::Bytes;
use typst::visualize::{ImageFormat, RasterFormat, RasterImage, SvgImage, VectorFormat};

use crate::Input;
use crate::drawn::Image;
use crate::world::{DocumentWorld, TemplateEnv};

/// Returns the usable images, and the names of the others.
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
