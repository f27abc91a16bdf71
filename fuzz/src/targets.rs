//! The targets: each panics if its input violates a rule.

mod conditions;
mod cron;
mod json;
mod multipart;
mod server;
mod signed;
mod template;

/// Runs one input.
pub type Run = Box<dyn Fn(&[u8])>;

/// A parser under test.
pub struct Target {
    /// Its name, which is also its folder in the corpus.
    pub name: &'static str,
    /// Prepares its state, once.
    pub open: fn() -> Run,
    /// Tokens of its format, which random mutations would rarely find.
    pub words: &'static [&'static str],
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "json", open: || Box::new(json::run), words: json::WORDS },
    Target { name: "cron", open: || Box::new(cron::run), words: cron::WORDS },
    Target { name: "template", open: || Box::new(template::run), words: template::WORDS },
    Target { name: "conditions", open: || Box::new(conditions::run), words: conditions::WORDS },
    Target { name: "signed", open: signed::open, words: signed::WORDS },
    Target { name: "multipart", open: multipart::open, words: multipart::WORDS },
];
