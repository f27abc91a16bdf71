//! QR codes.

use fast_qr::convert::Builder;
use fast_qr::convert::svg::SvgBuilder;
use fast_qr::{ECL, QRBuilder};

use crate::Error;

/// Returns a QR code as an SVG image with its quiet zone. Error correction level M.
pub fn qr_svg(text: &str) -> Result<String, Error> {
    let code = QRBuilder::new(text).ecl(ECL::M).build().map_err(|_| Error::Qr(text.len()))?;
    Ok(SvgBuilder::default().margin(4).to_str(&code))
}
