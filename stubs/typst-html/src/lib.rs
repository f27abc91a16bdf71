//! Stands in for the typesetter's HTML export, which brings an SVG renderer and a PDF renderer with it. The typesetter asks
//! whether an element is one of HTML; here none ever is.

use typst_library::foundations::{Content, Module, NativeRuleMap, Scope, StyleChain};
use typst_library::visualize::Color;
use typst_macros::elem;

/// An element of HTML. Nothing creates one.
#[elem(name = "elem")]
pub struct HtmlElem {
    /// In place of the tag.
    #[required]
    pub tag: i64,
}

/// What the typesetter asks about a tag.
pub mod tag {
    /// Whether spaces around the tag collapse.
    pub fn is_whitespace_collapsing(_: i64) -> bool {
        false
    }

    /// Whether the tag is part of a paragraph.
    pub fn should_group_into_pars(_: i64) -> bool {
        false
    }
}

/// The module `html` of a template: empty.
pub fn module() -> Module {
    Module::new("html", Scope::new())
}

/// Adds no rules.
pub fn register(_: &mut NativeRuleMap) {}

/// The content is never an element of MathML.
pub fn html_mathml_body<'a>(_: &'a Content, _: StyleChain<'a>) -> Option<Option<&'a Content>> {
    None
}

/// Called for HTML only; the content stays as it is.
pub fn html_span_filled(content: Content, _: Color) -> Content {
    content
}
