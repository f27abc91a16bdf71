//! Re-encodes uploaded images before the compiler sees them: decodes them within limits, applies their orientation,
//! scales them to what a page can show, and writes them without profiles and other metadata. A colour profile of a few
//! kilobytes can expand to gigabytes in a reader.

use std::io::Cursor;
use std::panic::catch_unwind;

use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

/// Larger images are not decoded.
const MOST_PIXELS: u64 = 25_000_000;
/// Memory limit of decoding: 25 million pixels of eight bytes, and a margin.
const MOST_MEMORY: u64 = 256 * 1024 * 1024;
/// Maximum width and height of the result, in pixels: 17 cm at 300 dots per inch.
const SIDE: u32 = 2000;
const QUALITY: u8 = 90;

/// Why an image is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is damaged, incomplete or not a PNG or JPEG, or decoding it exceeds the limits on pixels, memory and time.
    Unreadable,
    /// It is a CMYK JPEG that does not specify how its colours are stored.
    Colours,
}

/// Re-encodes a PNG or JPEG with all checks, for a new logo: decodes it within limits and writes it without profiles and other
/// metadata.
pub fn accept(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    match image::guess_format(bytes) {
        Ok(ImageFormat::Png) => {}
        Ok(ImageFormat::Jpeg) => check_jpeg(bytes)?,
        _ => return Err(Refusal::Unreadable),
    }
    // Decoders handle untrusted bytes and may panic.
    let drawn = catch_unwind(|| redraw(bytes)).ok().flatten();
    drawn.ok_or(Refusal::Unreadable)
}

/// Checks a JPEG: the decoder fills the missing part of a truncated file with grey, and inverts CMYK that Adobe
/// programs did not write.
fn check_jpeg(bytes: &[u8]) -> Result<(), Refusal> {
    let (mut adobe, mut components) = (false, 0);
    let mut rest = bytes.get(2..).unwrap_or_default();
    loop {
        let [0xff, kind, after @ ..] = rest else { return Err(Refusal::Unreadable) };
        match kind {
            // Padding before a marker.
            0xff => {
                rest = &rest[1..];
                continue;
            }
            // Markers without a length.
            0x01 | 0xd0..=0xd8 => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let [high, low, ..] = after else { return Err(Refusal::Unreadable) };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let segment = after.get(2..length).ok_or(Refusal::Unreadable)?;
        rest = &after[length..];
        match kind {
            0xee => adobe |= segment.starts_with(b"Adobe"),
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => components = segment.get(5).copied().unwrap_or(0),
            0xda => break,
            _ => {}
        }
    }
    if components == 4 && !adobe {
        return Err(Refusal::Colours);
    }
    // This marker cannot occur inside the image data.
    if rest.windows(2).any(|pair| pair == [0xff, 0xd9]) { Ok(()) } else { Err(Refusal::Unreadable) }
}

/// Re-encodes an image that was accepted before, which only has to be decodable; `None` if it cannot be within the limits.
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

/// Returns a PNG with only the chunks of the image itself.
fn essential(bytes: &[u8]) -> Option<Vec<u8>> {
    const SIGNATURE: usize = 8;
    let mut kept = bytes.get(..SIGNATURE)?.to_vec();
    let mut rest = &bytes[SIGNATURE..];
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let [a, b, c, d, kind @ ..] = *head;
        // Its header, its data and its checksum.
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
