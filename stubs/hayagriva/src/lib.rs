//! Stands in for the typesetter's bibliographies, which bring parsers of three formats of references with them. Loading references
//! fails, so [`Entry`] has no values, and a bibliography without references has no text.

use std::convert::Infallible;
use std::marker::PhantomData;

pub mod citationberg;

/// The built-in styles.
pub mod archive {
    use crate::citationberg::{IndependentStyle, Locale, Style, StyleClass, StyleSettings};

    /// A built-in style: only the default one, which every bibliography has.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum ArchivedStyle {
        /// The default style.
        InstituteOfElectricalAndElectronicsEngineers,
    }

    impl ArchivedStyle {
        /// No style is found.
        pub fn by_name(_: &str) -> Option<Self> {
            None
        }

        /// No style is listed.
        pub fn all() -> &'static [Self] {
            &[]
        }

        /// The style itself, which has no rules.
        pub fn get(self) -> Style {
            Style::Independent(IndependentStyle { settings: StyleSettings { class: StyleClass::InText } })
        }

        /// The names of the style.
        pub fn names(self) -> &'static [&'static str] {
            &["ieee"]
        }

        /// The name of the style for people.
        pub fn display_name(self) -> &'static str {
            "IEEE"
        }
    }

    /// No locales.
    pub fn locales() -> Vec<Locale> {
        Vec::new()
    }
}

/// Reading references.
pub mod io {
    use crate::Library;
    use serde::de::Error;
    use std::ops::Range;

    const UNSUPPORTED: &str = "bibliographies are not supported";

    /// Always fails.
    pub fn from_yaml_str(_: &str) -> Result<Library, serde_yaml::Error> {
        Err(serde_yaml::Error::custom(UNSUPPORTED))
    }

    /// Always fails.
    pub fn from_biblatex_str(_: &str) -> Result<Library, Vec<BibLaTeXError>> {
        Err(vec![BibLaTeXError::Parse(ParseError { span: 0..0, kind: UNSUPPORTED })])
    }

    /// Why references cannot be read.
    #[derive(Debug, Clone)]
    pub enum BibLaTeXError {
        /// The text is not valid.
        Parse(ParseError),
        /// A field is not valid.
        Type(ParseError),
    }

    /// Where the text is not valid, and why.
    #[derive(Debug, Clone)]
    pub struct ParseError {
        /// The place in the text.
        pub span: Range<usize>,
        /// The reason.
        pub kind: &'static str,
    }
}

/// Loaded references.
pub struct Library(Vec<Entry>);

impl Library {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Library {
    type Item = Entry;
    type IntoIter = std::vec::IntoIter<Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A reference, of which there are none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry(Infallible);

impl Entry {
    /// The key that cites the reference.
    pub fn key(&self) -> &str {
        match self.0 {}
    }

    /// The title of the reference.
    pub fn title(&self) -> Option<&FormatString> {
        match self.0 {}
    }
}

/// A text with its formats.
pub struct FormatString {
    /// The text.
    pub value: ChunkedString,
}

/// A text in pieces, of which there are none.
pub struct ChunkedString(Infallible);

impl ChunkedString {
    /// The text as one piece.
    pub fn to_str(&self) -> &str {
        match self.0 {}
    }
}

/// Renders citations and bibliographies.
pub struct BibliographyDriver<'a, T>(PhantomData<&'a T>);

impl<'a, T> BibliographyDriver<'a, T> {
    /// A driver without citations.
    #[expect(clippy::new_without_default, reason = "the typesetter calls only this")]
    pub fn new() -> Self {
        BibliographyDriver(PhantomData)
    }

    /// Has no effect.
    #[must_use]
    pub fn with_citation_number_offset(self, _: usize) -> Self {
        self
    }

    /// Has no effect: there is nothing to cite.
    pub fn citation(&mut self, _: CitationRequest<'a, T>) {}

    /// A bibliography without a text.
    pub fn finish(self, _: BibliographyRequest<'_>) -> Rendered {
        Rendered { bibliography: None, citations: Vec::new() }
    }
}

/// What a bibliography looks like.
pub struct BibliographyRequest<'a> {
    /// The style.
    pub style: &'a citationberg::IndependentStyle,
    /// The language.
    pub locale: Option<citationberg::LocaleCode>,
    /// The words of the languages.
    pub locale_files: &'a [citationberg::Locale],
}

/// What a citation looks like.
pub struct CitationRequest<'a, T>(PhantomData<&'a T>);

impl<'a, T> CitationRequest<'a, T> {
    /// The request says nothing.
    pub fn new(
        _: Vec<CitationItem<'a, T>>,
        _: &'a citationberg::IndependentStyle,
        _: Option<citationberg::LocaleCode>,
        _: &'a [citationberg::Locale],
        _: Option<usize>,
    ) -> Self {
        CitationRequest(PhantomData)
    }
}

/// A reference in a citation.
pub struct CitationItem<'a, T>(PhantomData<&'a T>);

impl<'a, T> CitationItem<'a, T> {
    /// The item says nothing.
    pub fn new(
        _: &'a T,
        _: Option<SpecificLocator<'a>>,
        _: Option<citationberg::LocaleCode>,
        _: bool,
        _: Option<CitePurpose>,
    ) -> Self {
        CitationItem(PhantomData)
    }
}

/// A place in a cited work.
pub struct SpecificLocator<'a>(pub citationberg::taxonomy::Locator, pub LocatorPayload<'a>);

/// The text of a place in a cited work.
pub enum LocatorPayload<'a> {
    /// A text.
    Str(&'a str),
    /// Something that the typesetter made.
    Transparent(TransparentLocator),
}

/// Something that the typesetter made.
pub struct TransparentLocator;

impl TransparentLocator {
    /// Drops it.
    pub fn new<T>(_: T) -> Self {
        TransparentLocator
    }
}

/// What a citation is for.
#[expect(missing_docs, reason = "the names say it")]
pub enum CitePurpose {
    Author,
    Year,
    Full,
    Prose,
}

/// What the driver rendered.
pub struct Rendered {
    /// The bibliography.
    pub bibliography: Option<RenderedBibliography>,
    /// The citations.
    pub citations: Vec<RenderedCitation>,
}

/// A rendered bibliography.
pub struct RenderedBibliography {
    /// Whether lines after the first are indented.
    pub hanging_indent: bool,
    /// One item for each reference.
    pub items: Vec<BibliographyItem>,
}

/// A rendered reference.
pub struct BibliographyItem {
    /// The key that cites the reference.
    pub key: String,
    /// What comes in a column of its own.
    pub first_field: Option<ElemChild>,
    /// The rest.
    pub content: ElemChildren,
}

/// A rendered citation.
pub struct RenderedCitation {
    /// The text.
    pub citation: ElemChildren,
}

/// Parts of a text.
pub struct ElemChildren(pub Vec<ElemChild>);

impl ElemChildren {
    /// Finds nothing.
    pub fn find_meta(&self, _: &ElemMeta) -> Option<&Elem> {
        None
    }
}

/// A part of a text.
pub enum ElemChild {
    /// A piece of text.
    Text(Formatted),
    /// A part with parts of its own.
    Elem(Elem),
    /// Markup of the typesetter.
    Markup(String),
    /// A link.
    Link {
        /// The text of the link.
        text: Formatted,
        /// Where the link goes.
        url: String,
    },
    /// Something that the typesetter made.
    Transparent {
        /// The number of the citation.
        cite_idx: usize,
        /// How it looks.
        format: Formatting,
    },
}

/// A part of a text with parts of its own.
pub struct Elem {
    /// The parts.
    pub children: ElemChildren,
    /// Where it is placed.
    pub display: Option<citationberg::Display>,
    /// What it is.
    pub meta: Option<ElemMeta>,
}

/// What a part is.
#[derive(PartialEq)]
pub enum ElemMeta {
    /// The number of a citation.
    CitationNumber,
    /// A reference.
    Entry(usize),
}

/// A piece of text.
pub struct Formatted {
    /// The text.
    pub text: String,
    /// How it looks.
    pub formatting: Formatting,
}

/// How a text looks.
#[expect(missing_docs, reason = "the names say it")]
pub struct Formatting {
    pub font_style: citationberg::FontStyle,
    pub font_variant: citationberg::FontVariant,
    pub font_weight: citationberg::FontWeight,
    pub text_decoration: citationberg::TextDecoration,
    pub vertical_align: citationberg::VerticalAlign,
}
