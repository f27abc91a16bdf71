//! What is fed: each target panics when its input breaks a rule.

mod conditions;
mod cron;
mod json;
mod multipart;
mod server;
mod signed;
mod template;

/// Takes one input.
pub type Run = Box<dyn Fn(&[u8])>;

/// A parser under test.
pub struct Target {
    /// Its name here and of its folder in the corpus.
    pub name: &'static str,
    /// Makes what it needs, once.
    pub open: fn() -> Run,
    /// Words of its format, which chance would take long to find.
    pub words: &'static [&'static str],
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "json", open: || Box::new(json::run), words: json::WORDS },
    Target { name: "cron", open: || Box::new(cron::run), words: cron::WORDS },
    Target { name: "template", open: || Box::new(template::run), words: template::WORDS },
    Target { name: "conditions", open: || Box::new(conditions::run), words: conditions::WORDS },
    Target { name: "signed", open: signed::open, words: signed::WORDS },
    Target { name: "multipart", open: multipart::open, words: multipart::WORDS },
];
