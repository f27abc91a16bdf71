//! The styles of citations and bibliographies.

/// A style.
pub enum Style {
    /// A style with rules of its own.
    Independent(IndependentStyle),
}

/// A style with rules of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndependentStyle {
    /// The settings.
    pub settings: StyleSettings,
}

impl IndependentStyle {
    /// Always fails.
    pub fn from_xml(_: &str) -> Result<Self, &'static str> {
        Err("styles of bibliographies are not supported")
    }
}

/// The settings of a style.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StyleSettings {
    /// Where citations are.
    pub class: StyleClass,
}

/// Where citations are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum StyleClass {
    InText,
    Note,
}

/// A language.
#[derive(Debug, Clone)]
pub struct LocaleCode(pub String);

/// The words of a language.
pub struct Locale;

/// Words of styles.
pub mod taxonomy {
    /// The kind of a place in a work.
    pub enum Locator {
        /// Of the typesetter.
        Custom,
    }
}

/// Where a part of a text is placed.
#[expect(missing_docs, reason = "the names say it")]
pub enum Display {
    Block,
    LeftMargin,
    Indent,
}

/// The slant of a text.
#[expect(missing_docs, reason = "the names say it")]
pub enum FontStyle {
    Normal,
    Italic,
}

/// The capitals of a text.
#[expect(missing_docs, reason = "the names say it")]
pub enum FontVariant {
    Normal,
    SmallCaps,
}

/// The weight of a text.
#[expect(missing_docs, reason = "the names say it")]
pub enum FontWeight {
    Normal,
    Bold,
    Light,
}

/// A line with a text.
#[expect(missing_docs, reason = "the names say it")]
pub enum TextDecoration {
    None,
    Underline,
}

/// The height of a text.
#[expect(missing_docs, reason = "the names say it")]
pub enum VerticalAlign {
    None,
    Baseline,
    Sup,
    Sub,
}
