//! Removes text that no font supports. PDF/A forbids a character without a glyph, and the export would fail.

use std::collections::BTreeSet;

use serde_json::Value;
use typst::layout::{Frame, FrameItem};
use typst_layout::PagedDocument;

use crate::Error;
use crate::fonts::Fonts;

/// Replaces a character that no font has.
const MISSING: char = '□';

/// The data with only supported characters.
pub(crate) struct Cleaner<'a> {
    fonts: &'a Fonts,
    data: Value,
    replaced: BTreeSet<char>,
}

impl<'a> Cleaner<'a> {
    pub(crate) fn new(fonts: &'a Fonts, json: &[u8]) -> Result<Cleaner<'a>, Error> {
        let data = serde_json::from_slice(json).map_err(|e| Error::Data(e.to_string()))?;
        let mut cleaner = Cleaner { fonts, data, replaced: BTreeSet::new() };
        cleaner.keep(|fonts, c| fonts.has(c));
        Ok(cleaner)
    }

    pub(crate) fn json(&self) -> Vec<u8> {
        self.data.to_string().into_bytes()
    }

    pub(crate) fn replaced(&self) -> Vec<char> {
        self.replaced.iter().copied().collect()
    }

    /// The last resort: uses only the main font.
    pub(crate) fn only_main_font(&mut self) {
        self.keep(|fonts, c| fonts.main_has(c));
    }

    fn keep(&mut self, shown: impl Fn(&Fonts, char) -> bool) {
        let (fonts, replaced) = (self.fonts, &mut self.replaced);
        each_text(&mut self.data, &mut |text| {
            // Nearly all text matches this.
            if text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\n')) {
                return;
            }
            // The letter and its marks so far.
            let mut cluster = Vec::new();
            let mut clean = String::with_capacity(text.len());
            for c in text.replace("\r\n", "\n").chars() {
                match kind(c) {
                    Kind::Nothing => continue,
                    Kind::Space(space) => clean.push(space),
                    Kind::Mark if !cluster.is_empty() => {
                        cluster.push(c);
                        if shown(fonts, c) && fonts.have_together(&cluster) {
                            clean.push(c);
                        } else {
                            cluster.pop();
                            replaced.insert(c);
                        }
                        continue;
                    }
                    Kind::Visible | Kind::Mark if shown(fonts, c) => clean.push(c),
                    Kind::Visible | Kind::Mark | Kind::Private => {
                        replaced.insert(c);
                        clean.push(MISSING);
                    }
                }
                cluster.clear();
                cluster.extend(clean.chars().next_back());
            }
            *text = clean;
        });
    }

    /// Removes characters that have no glyph after typesetting, such as marks that are not in the font of their letter;
    /// returns whether there were any.
    pub(crate) fn mend(&mut self, document: &PagedDocument) -> bool {
        let mut clusters = BTreeSet::new();
        for page in document.pages() {
            without_glyph(&page.frame, &mut clusters);
        }
        for cluster in &clusters {
            let mut chars = cluster.chars();
            let first = chars.next().map(String::from).unwrap_or_default();
            let rest: Vec<char> = chars.collect();
            let instead = if rest.is_empty() { MISSING.to_string() } else { first };
            self.replaced.extend(if rest.is_empty() { cluster.chars().collect() } else { rest });
            each_text(&mut self.data, &mut |text| {
                if text.contains(cluster) {
                    *text = text.replace(cluster, &instead);
                }
            });
        }
        !clusters.is_empty()
    }
}

enum Kind {
    Visible,
    /// Combines with the previous letter.
    Mark,
    /// Whitespace, replaced by this one.
    Space(char),
    /// Invisible, and left out.
    Nothing,
    /// Has a different meaning in every font; not allowed in PDF/A.
    Private,
}

fn kind(c: char) -> Kind {
    match c {
        '\n' => Kind::Space('\n'),
        '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Kind::Space('\n'),
        '\t' => Kind::Space(' '),
        c if c.is_control() => Kind::Nothing,
        // Byte order marks, variation selectors, tags, and direction marks, with which an amount could be displayed
        // backwards.
        '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e01ef}' => Kind::Nothing,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{fff0}'..='\u{fffb}' => Kind::Nothing,
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => Kind::Private,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' => {
            Kind::Mark
        }
        // Spaces of all widths, most of which fonts do not have.
        c if c.is_whitespace() && c != '\u{a0}' && c != '\u{202f}' => Kind::Space(' '),
        _ => Kind::Visible,
    }
}

fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(list) => list.iter_mut().for_each(|value| each_text(value, change)),
        Value::Object(map) => map.values_mut().for_each(|value| each_text(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Glyph 0 of every font means a missing glyph.
fn without_glyph(frame: &Frame, clusters: &mut BTreeSet<String>) {
    for (_, item) in frame.items() {
        match item {
            FrameItem::Group(group) => without_glyph(&group.frame, clusters),
            FrameItem::Text(text) => {
                for glyph in text.glyphs.iter().filter(|glyph| glyph.id == 0) {
                    clusters.extend(text.text.get(glyph.range()).filter(|s| !s.is_empty()).map(String::from));
                }
            }
            _ => {}
        }
    }
}
