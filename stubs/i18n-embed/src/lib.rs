//! Stands in for translations of the messages of a program. Messages have no texts, and there is no language to choose.

use std::fmt::{self, Display, Formatter};

use unic_langid::LanguageIdentifier;

/// Identifiers of languages.
pub mod unic_langid {
    use std::convert::Infallible;
    use std::str::FromStr;

    /// A language.
    #[derive(Clone, Debug)]
    pub struct LanguageIdentifier;

    impl FromStr for LanguageIdentifier {
        type Err = Infallible;

        fn from_str(_: &str) -> Result<Self, Infallible> {
            Ok(LanguageIdentifier)
        }
    }
}

/// Messages in the format of Fluent.
pub mod fluent {
    use crate::unic_langid::LanguageIdentifier;
    use crate::{I18nAssets, I18nEmbedError, LanguageLoader};

    pub use crate::fluent_language_loader;

    /// Loads nothing.
    #[derive(Default)]
    pub struct FluentLanguageLoader;

    impl FluentLanguageLoader {
        /// Has no effect.
        pub fn load_languages(&self, _: &dyn I18nAssets, _: &[LanguageIdentifier]) -> Result<(), I18nEmbedError> {
            Ok(())
        }

        /// Has no effect.
        pub fn set_use_isolating(&self, _: bool) {}
    }

    impl LanguageLoader for FluentLanguageLoader {}
}

/// Returns a loader.
#[macro_export]
macro_rules! fluent_language_loader {
    () => {
        $crate::fluent::FluentLanguageLoader
    };
}

/// What cannot be loaded.
#[derive(Debug)]
pub struct I18nEmbedError;

impl Display for I18nEmbedError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("there are no translations")
    }
}

impl std::error::Error for I18nEmbedError {}

/// The files of translations.
pub trait I18nAssets {}

impl<A> I18nAssets for A {}

/// Loads translations.
pub trait LanguageLoader {}

/// Chooses translations.
pub trait Localizer {
    /// The loader.
    fn language_loader(&self) -> &'_ dyn LanguageLoader;
    /// The files.
    fn i18n_assets(&self) -> &'_ dyn I18nAssets;
    /// Chooses the languages.
    fn select(&self, requested_languages: &[LanguageIdentifier]) -> Result<Vec<LanguageIdentifier>, I18nEmbedError>;
}

/// Returns no language.
pub fn select(
    _: &dyn LanguageLoader,
    _: &dyn I18nAssets,
    _: &[LanguageIdentifier],
) -> Result<Vec<LanguageIdentifier>, I18nEmbedError> {
    Ok(Vec::new())
}
