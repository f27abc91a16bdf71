//! Stands in for the embedding of a PDF's pages in another PDF. There is never a PDF to embed: see the stub of the parser.

pub use hayro_syntax;
use hayro_syntax::Pdf;
use pdf_writer::{Chunk, Ref, Settings};

/// Which page to embed.
#[derive(Debug, Clone, Copy)]
pub struct ExtractionQuery;

impl ExtractionQuery {
    /// As a page.
    pub fn new_page(_: usize) -> Self {
        ExtractionQuery
    }

    /// As a picture.
    pub fn new_xobject(_: usize) -> Self {
        ExtractionQuery
    }
}

/// Why a page cannot be embedded.
#[derive(Debug, Clone, Copy)]
pub enum ExtractionError {
    /// The PDF has no such page.
    InvalidPageIndex(usize),
}

/// What is embedded.
pub struct ExtractionResult {
    /// The objects.
    pub chunk: Chunk,
    /// The pages.
    pub root_refs: Vec<Result<Ref, ExtractionError>>,
    /// The parent of the pages.
    pub page_tree_parent_ref: Ref,
}

/// Never called: there is no PDF.
pub fn extract<'a, G>(
    _: &Pdf,
    _: Box<dyn FnMut() -> Ref + 'a>,
    _: Settings,
    _: G,
    _: &[ExtractionQuery],
) -> Result<ExtractionResult, ExtractionError>
where
    G: for<'b> FnMut(&mut pdf_writer::writers::Group<'b>),
{
    Err(ExtractionError::InvalidPageIndex(0))
}
