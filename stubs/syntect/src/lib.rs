//! Stands in for the highlighting of code. There are no grammars and no themes, so code is set as plain text.

use std::fmt::{self, Display, Formatter};

/// Grammars.
pub mod parsing {
    use super::{Display, Formatter, fmt};
    use std::convert::Infallible;
    use std::str::FromStr;

    /// A scope of a grammar.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Scope;

    impl Scope {
        /// Every name is the same scope.
        pub fn new(_: &str) -> Result<Scope, Infallible> {
            Ok(Scope)
        }
    }

    /// Why a grammar cannot be loaded.
    #[derive(Debug)]
    pub enum ParseSyntaxError {
        /// It is no YAML.
        InvalidYaml(NotYaml),
        /// Grammars are not supported.
        Unsupported,
    }

    impl Display for ParseSyntaxError {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str("highlighting of code is not supported")
        }
    }

    /// An error in a YAML text, of which there are none.
    #[derive(Debug)]
    pub struct NotYaml(Infallible);

    impl NotYaml {
        /// Where it is.
        pub fn marker(&self) -> &Marker {
            match self.0 {}
        }
    }

    /// A place in a YAML text, of which there are none.
    pub struct Marker(Infallible);

    impl Marker {
        /// The character.
        pub fn index(&self) -> usize {
            match self.0 {}
        }

        /// The line.
        pub fn line(&self) -> usize {
            match self.0 {}
        }

        /// The column.
        pub fn col(&self) -> usize {
            match self.0 {}
        }
    }

    /// A grammar, of which there are none.
    pub struct SyntaxDefinition(Infallible);

    impl SyntaxDefinition {
        /// Always fails.
        pub fn load_from_str(_: &str, _: bool, _: Option<&str>) -> Result<SyntaxDefinition, ParseSyntaxError> {
            Err(ParseSyntaxError::Unsupported)
        }
    }

    /// A grammar in a set, of which there are none.
    pub struct SyntaxReference {
        /// Its name.
        pub name: String,
        /// The extensions of its files.
        pub file_extensions: Vec<String>,
        nothing: Infallible,
    }

    impl SyntaxReference {
        /// There is nothing that could be highlighted.
        pub(crate) fn none(&self) -> Infallible {
            self.nothing
        }
    }

    /// A set without grammars.
    #[derive(Clone, Debug)]
    pub struct SyntaxSet;

    impl SyntaxSet {
        /// Returns no grammars.
        pub fn syntaxes(&self) -> &[SyntaxReference] {
            &[]
        }

        /// Finds nothing.
        pub fn find_syntax_by_token(&self, _: &str) -> Option<&SyntaxReference> {
            None
        }
    }

    /// Builds a set.
    #[derive(Default)]
    pub struct SyntaxSetBuilder;

    impl SyntaxSetBuilder {
        /// Starts a set.
        pub fn new() -> SyntaxSetBuilder {
            SyntaxSetBuilder
        }

        /// Adds a grammar, of which there are none.
        pub fn add(&mut self, syntax: SyntaxDefinition) {
            match syntax.0 {}
        }

        /// Returns a set without grammars.
        pub fn build(self) -> SyntaxSet {
            SyntaxSet
        }
    }

    /// The scopes to which a style applies.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ScopeSelectors;

    impl FromStr for ScopeSelectors {
        type Err = Infallible;

        fn from_str(_: &str) -> Result<Self, Infallible> {
            Ok(ScopeSelectors)
        }
    }
}

/// Styles.
pub mod highlighting {
    use std::io::{BufRead, Seek};
    use std::marker::PhantomData;
    use std::ops::BitOr;

    use super::LoadingError;
    use super::parsing::{Scope, ScopeSelectors};

    /// A color.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Color {
        /// Red.
        pub r: u8,
        /// Green.
        pub g: u8,
        /// Blue.
        pub b: u8,
        /// Opacity.
        pub a: u8,
    }

    impl Color {
        /// Opaque black.
        pub const BLACK: Color = Color { r: 0, g: 0, b: 0, a: 255 };
    }

    /// Bold, italic and underlined text.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FontStyle(u8);

    impl FontStyle {
        /// Bold.
        pub const BOLD: FontStyle = FontStyle(1);
        /// Underlined.
        pub const UNDERLINE: FontStyle = FontStyle(2);
        /// Italic.
        pub const ITALIC: FontStyle = FontStyle(4);

        /// Whether it has all of these.
        pub fn contains(self, other: FontStyle) -> bool {
            self.0 & other.0 == other.0
        }
    }

    impl BitOr for FontStyle {
        type Output = FontStyle;

        fn bitor(self, other: FontStyle) -> FontStyle {
            FontStyle(self.0 | other.0)
        }
    }

    /// A style of text.
    #[derive(Clone, Copy, Debug)]
    pub struct Style {
        /// The color of the text.
        pub foreground: Color,
        /// Its weight and shape.
        pub font_style: FontStyle,
    }

    /// A change of a style.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct StyleModifier {
        /// The color of the text.
        pub foreground: Option<Color>,
        /// The color behind it.
        pub background: Option<Color>,
        /// Its weight and shape.
        pub font_style: Option<FontStyle>,
    }

    /// The style of a scope.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ThemeItem {
        /// The scope.
        pub scope: ScopeSelectors,
        /// The style.
        pub style: StyleModifier,
    }

    /// What applies to all scopes.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ThemeSettings {
        /// The color of the text.
        pub foreground: Option<Color>,
    }

    /// A theme.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct Theme {
        /// Its name.
        pub name: Option<String>,
        /// Who made it.
        pub author: Option<String>,
        /// What applies to all scopes.
        pub settings: ThemeSettings,
        /// The styles of scopes.
        pub scopes: Vec<ThemeItem>,
    }

    /// Loads themes.
    pub struct ThemeSet;

    impl ThemeSet {
        /// Always fails.
        pub fn load_from_reader<R: BufRead + Seek>(_: &mut R) -> Result<Theme, LoadingError> {
            Err(LoadingError::Unsupported)
        }
    }

    /// Styles the scopes of a text.
    pub struct Highlighter<'theme>(PhantomData<&'theme Theme>);

    impl<'theme> Highlighter<'theme> {
        /// A highlighter that knows no theme.
        pub fn new(_: &'theme Theme) -> Highlighter<'theme> {
            Highlighter(PhantomData)
        }

        /// Returns the style of plain text.
        pub fn style_for_stack(&self, _: &[Scope]) -> Style {
            Style { foreground: Color::BLACK, font_style: FontStyle::default() }
        }
    }
}

/// Highlighting line by line.
pub mod easy {
    use std::convert::Infallible;
    use std::marker::PhantomData;

    use super::highlighting::{Style, Theme};
    use super::parsing::{SyntaxReference, SyntaxSet};

    /// Highlights lines with a grammar, of which there are none.
    pub struct HighlightLines<'theme>(Infallible, PhantomData<&'theme Theme>);

    impl<'theme> HighlightLines<'theme> {
        /// Never called: there is no grammar.
        pub fn new(syntax: &SyntaxReference, _: &'theme Theme) -> HighlightLines<'theme> {
            HighlightLines(syntax.none(), PhantomData)
        }

        /// Never called.
        pub fn highlight_line<'line>(
            &mut self,
            _: &'line str,
            _: &SyntaxSet,
        ) -> Result<Vec<(Style, &'line str)>, Infallible> {
            match self.0 {}
        }
    }
}

/// Why a theme cannot be loaded.
#[derive(Debug)]
pub enum LoadingError {
    /// It names a grammar that cannot be loaded.
    ParseSyntax(parsing::ParseSyntaxError, String),
    /// Themes are not supported.
    Unsupported,
}

impl Display for LoadingError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("highlighting of code is not supported")
    }
}
