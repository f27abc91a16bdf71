//! Stands in for the PDF parser, which the typesetter needs for pages of a PDF as pictures. Loading a PDF fails, so [`Pdf`] and all
//! that follows from it have no values.

use std::convert::Infallible;
use std::fmt::{self, Debug, Formatter};

/// Why a PDF cannot be loaded.
#[derive(Debug, Clone)]
pub enum LoadPdfError {
    /// It is encrypted.
    Decryption(Infallible),
    /// It cannot be read.
    Invalid,
}

/// A loaded PDF, of which there are none.
pub struct Pdf(Infallible);

impl Pdf {
    /// Always fails.
    pub fn new<D>(_: D) -> Result<Self, LoadPdfError> {
        Err(LoadPdfError::Invalid)
    }

    /// The bytes of the PDF.
    pub fn data(&self) -> &&'static [u8] {
        match self.0 {}
    }

    /// The pages of the PDF.
    pub fn pages(&self) -> &[page::Page<'_>] {
        match self.0 {}
    }

    /// The version of the PDF.
    pub fn version(&self) -> PdfVersion {
        match self.0 {}
    }

    /// The cross-reference table of the PDF.
    pub fn xref(&self) -> &XRef {
        match self.0 {}
    }
}

/// The cross-reference table of a PDF.
pub struct XRef(Infallible);

impl XRef {
    /// Whether the PDF has layers.
    pub fn has_optional_content_groups(&self) -> bool {
        match self.0 {}
    }
}

/// The versions of PDF.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub enum PdfVersion {
    Pdf10,
    Pdf11,
    Pdf12,
    Pdf13,
    Pdf14,
    Pdf15,
    Pdf16,
    Pdf17,
    Pdf20,
}

/// Pages of a PDF.
pub mod page {
    use super::{Debug, Formatter, Infallible, fmt};
    use std::marker::PhantomData;

    /// A page of a PDF.
    pub struct Page<'pdf>(Infallible, PhantomData<&'pdf ()>);

    impl Page<'_> {
        /// Width and height.
        pub fn render_dimensions(&self) -> (f32, f32) {
            match self.0 {}
        }
    }

    impl Debug for Page<'_> {
        fn fmt(&self, _: &mut Formatter<'_>) -> fmt::Result {
            match self.0 {}
        }
    }
}
