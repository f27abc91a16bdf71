//! Detects the size of an image from its header as it is received. Nothing is decoded and little is kept in memory,
//! since a small file can contain a huge image.

/// Looks for the dimensions of a PNG or JPEG in the pieces of a content.
#[derive(Debug, Default)]
pub struct Header {
    state: State,
    /// The bytes that are being examined.
    held: Vec<u8>,
    /// The number of following bytes to skip.
    skip: usize,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    /// Nothing is known yet.
    #[default]
    Start,
    /// Between the segments of a JPEG.
    Segments,
    /// The number of pixels; 0 if the header does not have it.
    Known(i64),
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The end of the width and height of a PNG.
const PNG_HEADER: usize = 24;

impl Header {
    /// Examines the next piece.
    pub fn see(&mut self, mut piece: &[u8]) {
        while !matches!(self.state, State::Known(_)) {
            let passed = self.skip.min(piece.len());
            self.skip -= passed;
            let Some((byte, rest)) = piece[passed..].split_first() else { return };
            piece = rest;
            self.held.push(*byte);
            let next = match self.state {
                State::Start => self.at_start(),
                _ => self.in_segments(),
            };
            if let Some(state) = next {
                self.state = state;
                self.held.clear();
            }
        }
    }

    /// Returns the number of pixels; 0 if it is not a PNG or JPEG, or has no dimensions.
    pub fn pixels(&self) -> i64 {
        if let State::Known(pixels) = self.state { pixels } else { 0 }
    }

    /// Returns the next state, if enough bytes have been received.
    fn at_start(&self) -> Option<State> {
        match &self.held[..] {
            [0xff] => None,
            [0xff, 0xd8] => Some(State::Segments),
            held if held.len() < PNG_HEADER => {
                let is_png = held.iter().zip(PNG).all(|(byte, of_png)| byte == of_png);
                if is_png { None } else { Some(State::Known(0)) }
            }
            held if &held[12..16] == b"IHDR" => Some(State::Known(product(&held[16..20], &held[20..24]))),
            _ => Some(State::Known(0)),
        }
    }

    fn in_segments(&mut self) -> Option<State> {
        match self.held[..] {
            [0xff] => None,
            // Segments may have leading fill bytes.
            [0xff, 0xff] => {
                self.held.pop();
                None
            }
            // These have no length.
            [0xff, 0x01 | 0xd0..=0xd8] => Some(State::Segments),
            // The image data starts or ends, without dimensions.
            [0xff, 0xd9 | 0xda] => Some(State::Known(0)),
            [0xff, _] | [0xff, _, _] => None,
            // A frame: its precision, height and width follow.
            [0xff, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf, ..] => {
                (self.held.len() == 9).then(|| State::Known(product(&self.held[5..7], &self.held[7..9])))
            }
            [0xff, _, high, low] => {
                let length = usize::from(u16::from_be_bytes([high, low]));
                self.skip = length.saturating_sub(2);
                Some(if length < 2 { State::Known(0) } else { State::Segments })
            }
            _ => Some(State::Known(0)),
        }
    }
}

fn product(one: &[u8], other: &[u8]) -> i64 {
    let number = |bytes: &[u8]| bytes.iter().fold(0_i64, |number, byte| number * 256 + i64::from(*byte));
    number(one).saturating_mul(number(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(content: &[u8], piece: usize) -> i64 {
        let mut header = Header::default();
        content.chunks(piece).for_each(|piece| header.see(piece));
        header.pixels()
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        [PNG, &[0, 0, 0, 13], b"IHDR", &width.to_be_bytes(), &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat()
    }

    /// Creates a JPEG with this number of other bytes before the frame.
    fn jpeg(before: u16, kind: u8, width: u16, height: u16) -> Vec<u8> {
        let other =
            [&[0xff, 0xd8, 0xff, 0xff, 0xe1][..], &(before + 2).to_be_bytes(), &vec![0xff; before.into()]].concat();
        let frame = [&[0xff, kind, 0, 17, 8][..], &height.to_be_bytes(), &width.to_be_bytes(), &[3]].concat();
        [other, frame].concat()
    }

    #[test]
    fn detects_the_size_in_any_pieces() {
        for piece in [1, 2, 3, 7, 100_000] {
            assert_eq!(pixels(&png(640, 480), piece), 307_200);
            assert_eq!(pixels(&png(u32::MAX, u32::MAX), piece), i64::MAX);
            assert_eq!(pixels(&jpeg(40_000, 0xc0, 640, 480), piece), 307_200);
            assert_eq!(pixels(&jpeg(0, 0xc2, 65_535, 65_535), piece), 65_535 * 65_535);
        }
    }

    #[test]
    fn returns_zero_without_a_size() {
        let cut = &png(640, 480)[..20];
        let no_frame = [&[0xff, 0xd8, 0xff, 0xda][..], &jpeg(0, 0xc0, 9, 9)].concat();
        let tables_only = jpeg(0, 0xc4, 640, 480);
        let no_length = [0xff, 0xd8, 0xff, 0xe0, 0, 1, 0xff, 0xc0, 0, 17, 8, 0, 9, 0, 9];
        for content in [&b""[..], b"x", b"GIF89a", PNG, cut, &no_frame, &tables_only, &no_length, &[0xff, 0xd8, 0, 0]] {
            assert_eq!(pixels(content, 1), 0, "{content:?}");
            assert_eq!(pixels(content, 100), 0, "{content:?}");
        }
    }
}
