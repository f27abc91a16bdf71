//! Creates PDF/A-3 from a template and data, without files, network or other programs. No text makes it fail:
//! characters that no font has are replaced, and an image that cannot be decoded is left out.

mod apart;
mod drawn;
mod fonts;
mod image;
mod press;
mod qr;
mod redraw;
mod text;
mod world;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use confined::Program;
use rayon::{ThreadPool, ThreadPoolBuilder};

use typst::World;
use typst::WorldExt;
use typst::diag::SourceDiagnostic;
use typst::foundations::{Datetime, Smart};
use typst::syntax::DiagSpan;
use typst_layout::PagedDocument;
use typst_pdf::{PdfOptions, PdfStandard, PdfStandards, Timestamp};

pub use apart::work;
pub use press::presses;
pub use qr::qr_svg;
pub use redraw::{Refusal, accept as redraw};

use fonts::Fonts;
use press::TypesetPool;
use text::Cleaner;
use world::{DocumentWorld, TemplateEnv};

/// Number of documents that the compiler's cache covers: enough to keep a template cached, and small enough to save
/// memory.
const KEPT: usize = 3;
/// A document with more pages is evicted immediately: a thousand rows take 75 MB.
const LARGE: usize = 4;
/// Data with more bytes, about two hundred rows, creates a document that takes much memory.
const LARGE_DATA: usize = 32_000;

/// A template with its fonts, to create documents from. It can be shared between threads.
pub struct Typesetter {
    place: Runtime,
    made: AtomicU64,
}

/// Where documents are typeset.
enum Runtime {
    /// On threads of this process.
    Here(Box<Here>),
    /// In other processes.
    Apart { program: Program, template: String, presses: Box<TypesetPool<Option<apart::Press>>> },
}

struct Here {
    desk: TemplateEnv,
    presses: TypesetPool<ThreadPool>,
}

/// The input of one document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Input<'a> {
    /// JSON that the template reads with `json("/data.json")`.
    pub data: &'a [u8],
    /// Images by name. The template finds the usable ones in `json("/images.json")`, from name to path. PNG, JPEG, GIF,
    /// WebP or SVG, detected from their bytes; all except SVG are re-encoded. The names must come from the program,
    /// never from the data: the compiler stores every path that it has seen forever.
    pub images: &'a [(&'static str, Vec<u8>)],
    /// A file to embed in the PDF.
    pub attachment: Option<&'a Attachment>,
    /// The date in the PDF, in seconds since 1970.
    pub created: i64,
}

/// An embedded file, as in PDF/A-3.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Its name in the PDF, such as `data.xml`, without folders.
    pub name: String,
    /// Its media type, such as `text/xml`.
    pub mime: String,
    /// Its description, for people.
    pub description: String,
    /// Its relationship to the document: `source`, `data`, `alternative` or `supplement`.
    pub relationship: &'static str,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A finished document.
#[derive(Clone, Debug)]
pub struct Pdf {
    /// The file. The same input results in the same bytes.
    pub bytes: Vec<u8>,
    /// The number of pages.
    pub pages: usize,
    /// Characters that no font has, shown as `□`, and marks that no font can combine with their letter, which are left
    /// out.
    pub replaced: Vec<char>,
    /// Names of images that were left out, because they cannot be decoded or are not allowed in an archive.
    pub dropped: Vec<&'static str>,
    /// The conformance level of the file.
    pub conformance: Conformance,
}

/// The conformance levels of PDF/A-3 in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conformance {
    /// PDF/A-3a and PDF/UA-1: also accessible to programs and screen readers.
    Accessible,
    /// PDF/A-3b: only the appearance is preserved. For texts whose characters cannot be derived from their glyphs.
    Basic,
}

/// Why a document could not be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The template is invalid, at this line if known.
    Template(Option<usize>, String),
    /// The data is not JSON.
    Data(String),
    /// The text does not fit in a QR code.
    Qr(usize),
    /// The typesetting process ended, or took too long.
    Failed(String),
}

/// Whether a document with this data is large, and takes long and much memory.
pub fn is_large(data: &[u8]) -> bool {
    data.len() > LARGE_DATA
}

impl Typesetter {
    /// Parses the template, and reports the line of an error. Documents are typeset on threads of this process.
    pub fn new(template: &str) -> Result<Typesetter, Error> {
        Typesetter::here(template, presses())
    }

    /// Creates a typesetter with a single thread.
    pub(crate) fn alone(template: &str) -> Result<Typesetter, Error> {
        Typesetter::here(template, 1)
    }

    fn here(template: &str, many: usize) -> Result<Typesetter, Error> {
        let desk = TemplateEnv::new(Fonts::load(), template)?;
        // The compiler does its parallel work in the pool that it runs in: here on this thread only.
        let presses = TypesetPool::new(many, || ThreadPoolBuilder::new().num_threads(1).build())
            .map_err(|error| Error::Template(None, format!("no threads: {error}")))?;
        Ok(Typesetter { place: Runtime::Here(Box::new(Here { desk, presses })), made: AtomicU64::new(0) })
    }

    /// Creates a typesetter that uses other processes, so that no document can crash this one.
    pub fn apart(template: &str, program: Program) -> Result<Typesetter, Error> {
        TemplateEnv::new(Fonts::load(), template)?;
        let presses = Box::new(TypesetPool::new(presses(), || Ok::<_, Error>(None))?);
        let place = Runtime::Apart { program, template: template.to_string(), presses };
        Ok(Typesetter { place, made: AtomicU64::new(0) })
    }

    /// Uses at most `many` processes at the same time, and one more for large documents.
    pub fn with_presses(self, many: usize) -> Result<Typesetter, Error> {
        let place = match self.place {
            Runtime::Apart { program, template, .. } => {
                let presses = Box::new(TypesetPool::new(many.max(1), || Ok::<_, Error>(None))?);
                Runtime::Apart { program, template, presses }
            }
            here @ Runtime::Here(_) => here,
        };
        Ok(Typesetter { place, made: self.made })
    }

    /// Returns the number of documents started.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Typesets a document when a worker is free.
    pub fn typeset(&self, input: Input<'_>) -> Result<Pdf, Error> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let large = is_large(input.data);
        match &self.place {
            Runtime::Here(here) if large => here.presses.run_large(|press| {
                press.install(|| {
                    comemo::evict(0);
                    here.make(input)
                })
            }),
            Runtime::Here(here) => here.presses.run(|press| press.install(|| here.make(input))),
            Runtime::Apart { program, template, presses } => {
                let make = |press: &mut _, input| apart::typeset(press, program, template, input);
                let made = |press: &mut Option<apart::Press>| match make(press, input) {
                    // Whatever the cause, a document without its images is better than none.
                    Err(Error::Failed(_)) if !input.images.is_empty() => {
                        let dropped = input.images.iter().map(|(name, _)| *name).collect();
                        make(press, Input { images: &[], ..input }).map(|pdf| Pdf { dropped, ..pdf })
                    }
                    made => made,
                };
                if !large {
                    return presses.run(made);
                }
                presses.run_large(|press| {
                    let made = made(press);
                    // This frees its memory.
                    *press = None;
                    made
                })
            }
        }
    }
}

impl Here {
    fn make(&self, input: Input<'_>) -> Result<Pdf, Error> {
        let made = self.attempts(input);
        // Otherwise the memory of the compiler grows with every document.
        let small = made.as_ref().is_ok_and(|pdf| pdf.pages <= LARGE);
        comemo::evict(if small { KEPT } else { 0 });
        made
    }

    /// Tries with all images, then without one of them, then without any, then with only the main font. Each step is
    /// more likely to succeed, and only template errors remain after the last.
    fn attempts(&self, input: Input<'_>) -> Result<Pdf, Error> {
        let mut cleaner = Cleaner::new(&self.desk.fonts, input.data)?;
        let (images, broken) = image::usable(&self.desk, input.images);
        let first = match self.attempt(&mut cleaner, images.clone(), input) {
            Ok(made) => return Ok(Pdf { dropped: broken, ..made }),
            Err(error) => error,
        };
        // CMYK colours, for example, can be decoded but are not allowed in an archive.
        for bad in &images {
            let others = images.iter().filter(|image| image.name != bad.name).cloned().collect();
            if let Ok(made) = self.attempt(&mut cleaner, others, input) {
                return Ok(Pdf { dropped: [&broken[..], &[bad.name]].concat(), ..made });
            }
        }
        let dropped: Vec<&'static str> = input.images.iter().map(|(name, _)| *name).collect();
        if images.len() > 1
            && let Ok(made) = self.attempt(&mut cleaner, Vec::new(), input)
        {
            return Ok(Pdf { dropped, ..made });
        }
        cleaner.only_main_font();
        self.attempt(&mut cleaner, Vec::new(), input).map(|made| Pdf { dropped, ..made }).map_err(|_| first)
    }

    fn attempt(&self, cleaner: &mut Cleaner<'_>, images: Vec<drawn::Image>, input: Input<'_>) -> Result<Pdf, Error> {
        let mut sheet = DocumentWorld::new(&self.desk, images, input);
        // Characters and marks without a common font are only detected when they are set; a few rounds remove them.
        for _ in 0..3 {
            sheet.set_data(cleaner.json());
            let document = compile(&sheet)?;
            if cleaner.mend(&document) {
                continue;
            }
            if document.pages().len() > LARGE {
                // Not only afterwards: writing the file takes as much memory again.
                comemo::evict(0);
            }
            let (bytes, conformance) = export(&sheet, &document, input)?;
            let replaced = cleaner.replaced();
            return Ok(Pdf { bytes, pages: document.pages().len(), replaced, dropped: Vec::new(), conformance });
        }
        Err(Error::Template(None, "the text contains characters that no font supports".into()))
    }
}

/// The compiler may panic on unusual input; one document must not crash the process.
fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::Template(None, "the compiler panicked".into())))
}

fn compile(sheet: &DocumentWorld<'_>) -> Result<PagedDocument, Error> {
    guarded(|| typst::compile::<PagedDocument>(sheet).output.map_err(|faults| explain(sheet, &faults)))
}

fn export(
    sheet: &DocumentWorld<'_>,
    document: &PagedDocument,
    input: Input<'_>,
) -> Result<(Vec<u8>, Conformance), Error> {
    let accessible = &[PdfStandard::A_3a, PdfStandard::Ua_1][..];
    let mut last = Error::Template(None, String::new());
    for (standards, conformance) in [(accessible, Conformance::Accessible), (&[PdfStandard::A_3b], Conformance::Basic)]
    {
        let standards = PdfStandards::new(standards).map_err(|e| Error::Template(None, e.message().to_string()))?;
        let options = PdfOptions {
            ident: Smart::Custom(format!("{}-{:x}", input.created, typst::utils::hash128(input.data))),
            creator: Smart::Custom(None),
            timestamp: moment(input.created).map(Timestamp::new_utc),
            standards,
            ..PdfOptions::default()
        };
        match guarded(|| typst_pdf::pdf(document, &options).map_err(|faults| explain(sheet, &faults))) {
            Ok(bytes) => return Ok((bytes, conformance)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Converts seconds since 1970 to a date and time; returns 1970 for values outside the calendar.
fn moment(seconds: i64) -> Option<Datetime> {
    let at = jiff::Timestamp::from_second(seconds).ok().filter(|t| t.as_second() >= 0).unwrap_or_default();
    let at = at.to_zoned(jiff::tz::TimeZone::UTC);
    let small = |n: i8| u8::try_from(n).unwrap_or_default();
    let (month, day) = (small(at.month()), small(at.day()));
    Datetime::from_ymd_hms(at.year().into(), month, day, small(at.hour()), small(at.minute()), small(at.second()))
}

/// Returns the first error, with its line in the template.
fn explain(world: &dyn World, faults: &[SourceDiagnostic]) -> Error {
    match faults.first() {
        Some(fault) => Error::Template(line(world, fault.span), fault.message.to_string()),
        None => Error::Template(None, "unknown".into()),
    }
}

fn line(world: &dyn World, span: DiagSpan) -> Option<usize> {
    let id = span.id().filter(|id| *id == world.main())?;
    let at = world.range(span)?.start;
    Some(world.source(id).ok()?.lines().byte_to_line(at)? + 1)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Template(Some(line), message) => write!(f, "template, line {line}: {message}"),
            Error::Template(None, message) => write!(f, "template: {message}"),
            Error::Data(message) => write!(f, "data: {message}"),
            Error::Failed(message) => f.write_str(message),
            Error::Qr(bytes) => write!(f, "{bytes} bytes are too many for a QR code"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
