//! The fonts in the binary, and which characters they have.

use typst::foundations::Bytes;
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;

/// In the order in which they are tried for a character; the first is the main font, the second its bold.
static FILES: [&[u8]; 5] = [
    include_bytes!("../fonts/Inter-Regular.otf"),
    include_bytes!("../fonts/Inter-SemiBold.otf"),
    include_bytes!("../fonts/DejaVuSans.ttf"),
    include_bytes!("../fonts/NotoEmoji-Regular.ttf"),
    include_bytes!("../fonts/DroidSansFallback.ttf"),
];

/// All fonts.
pub(crate) struct Fonts {
    pub(crate) list: Vec<Font>,
    pub(crate) book: LazyHash<FontBook>,
    each: Vec<Coverage>,
}

impl Fonts {
    pub(crate) fn load() -> Fonts {
        let list: Vec<Font> = FILES.iter().flat_map(|file| Font::iter(Bytes::new(*file))).collect();
        let book = LazyHash::new(FontBook::from_fonts(&list));
        let each = list.iter().map(Coverage::of).collect();
        Fonts { list, book, each }
    }

    /// Whether any font has this character.
    pub(crate) fn has(&self, c: char) -> bool {
        self.each.iter().any(|font| font.has(c))
    }

    /// Whether any one font has all of these: a letter and its marks must be in the same font.
    pub(crate) fn have_together(&self, chars: &[char]) -> bool {
        self.each.iter().any(|font| chars.iter().all(|c| font.has(*c)))
    }

    /// Whether the main font has this character.
    pub(crate) fn main_has(&self, c: char) -> bool {
        self.each.first().is_some_and(|font| font.has(c))
    }
}

/// A bit for every code point.
struct Coverage(Vec<u64>);

impl Coverage {
    fn of(font: &Font) -> Coverage {
        let mut bits = vec![0; 0x11_0000 / 64];
        for c in font.info().coverage.iter() {
            if let Some(word) = bits.get_mut(c as usize / 64) {
                *word |= 1_u64 << (c % 64);
            }
        }
        Coverage(bits)
    }

    fn has(&self, c: char) -> bool {
        let c = u32::from(c);
        self.0.get(c as usize / 64).is_some_and(|word| word & (1 << (c % 64)) != 0)
    }
}
