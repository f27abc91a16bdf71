//! Pictures that people sent are drawn anew before the compiler sees them: decoded within limits, turned as they say,
//! made smaller when they are larger than a page can show, and written without profiles and other extras. A colour
//! profile of a few kilobytes can unfold to gigabytes in whoever reads it.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

/// More than this is not decoded.
const MOST_PIXELS: u64 = 25_000_000;
/// What decoding may take: 25 million pixels of eight bytes, and some more.
const MOST_MEMORY: u64 = 256 * 1024 * 1024;
/// Pixels on a side of what is drawn: 17 cm at 300 dots per inch.
const SIDE: u32 = 2000;
const QUALITY: u8 = 90;

/// The same picture, harmless; `None` when it cannot be read within the limits.
pub(crate) fn redraw(bytes: &[u8]) -> Option<Vec<u8>> {
    let format = image::guess_format(bytes).ok()?;
    let plain;
    let bytes = match format {
        ImageFormat::Png => {
            plain = essential(bytes)?;
            &plain
        }
        ImageFormat::Jpeg | ImageFormat::Gif | ImageFormat::WebP => bytes,
        _ => return None,
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().ok()?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS || decoder.total_bytes() > MOST_MEMORY {
        return None;
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).ok()?;
    if width > SIDE || height > SIDE {
        picture = picture.thumbnail(SIDE, SIDE);
    }
    picture.apply_orientation(orientation);
    let mut drawn = Vec::new();
    match format {
        ImageFormat::Jpeg => {
            let picture = if picture.color().has_color() {
                DynamicImage::from(picture.into_rgb8())
            } else {
                picture.into_luma8().into()
            };
            picture.write_with_encoder(JpegEncoder::new_with_quality(&mut drawn, QUALITY)).ok()?;
        }
        _ => {
            let picture: DynamicImage = match (picture.color().has_color(), picture.color().has_alpha()) {
                (false, false) => picture.into_luma8().into(),
                (true, false) => picture.into_rgb8().into(),
                (_, true) => picture.into_rgba8().into(),
            };
            picture.write_to(&mut Cursor::new(&mut drawn), ImageFormat::Png).ok()?;
        }
    }
    Some(drawn)
}

/// A PNG with the chunks that make the picture alone.
fn essential(bytes: &[u8]) -> Option<Vec<u8>> {
    const SIGNATURE: usize = 8;
    let mut kept = bytes.get(..SIGNATURE)?.to_vec();
    let mut rest = &bytes[SIGNATURE..];
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let [a, b, c, d, kind @ ..] = *head;
        // Its head, its data and its checksum.
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?.checked_add(12)?;
        let chunk = rest.get(..length)?;
        if matches!(&kind, b"IHDR" | b"PLTE" | b"tRNS" | b"IDAT" | b"IEND") {
            kept.extend_from_slice(chunk);
        }
        rest = &rest[length..];
        if &kind == b"IEND" {
            break;
        }
    }
    Some(kept)
}
