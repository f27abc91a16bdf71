//! Typesets documents in separate processes, which can run out of memory, stack or time without affecting this one. A
//! process is reused for the next document; messages are prefixed with their length.

use std::ffi::OsString;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::redraw::{self, Refusal};
use crate::{Attachment, Conformance, Error, Input, Pdf, Typesetter};

/// Maximum size of a message: more than any document or image.
const LONGEST: u32 = 256 * 1024 * 1024;

/// How such a process is started: it has to call [`work`] with its standard input and output.
#[derive(Clone, Debug)]
pub struct Program {
    /// The path of the program.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Time limit per document.
    pub patience: Duration,
}

/// A running process.
pub(crate) struct Press {
    child: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Press {
    fn start(program: &Program, template: &str) -> io::Result<Press> {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Memory counts when it is used, not when the allocator reserves it.
        command.env("MIMALLOC_ARENA_EAGER_COMMIT", "0");
        // When memory runs out, the end is what matters; a backtrace takes seconds.
        command.env("RUST_BACKTRACE", "0");
        // Ctrl-C must not reach it: documents in progress are completed.
        command.process_group(0);
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut press = Press { child, input: BufWriter::new(input), output: BufReader::new(output) };
        put(&mut press.input, template.as_bytes())?;
        Ok(press)
    }
}

impl Drop for Press {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Typesets a document in the process of `press`, which is started if necessary.
pub(crate) fn typeset(
    press: &mut Option<Press>,
    program: &Program,
    template: &str,
    input: Input<'_>,
) -> Result<Pdf, Error> {
    converse(press, program, template, |to| ask(to, input), |from| hear(from, input))?.flatten()
}

/// Re-encodes an image in the process of `press`. An image that crashes the process is rejected.
pub(crate) fn redraw(
    press: &mut Option<Press>,
    program: &Program,
    template: &str,
    picture: &[u8],
) -> Result<Result<Vec<u8>, Refusal>, Error> {
    let answer = converse(press, program, template, |to| ask_to_redraw(to, picture), hear_redrawn)?;
    Ok(answer.unwrap_or(Err(Refusal::Unreadable)))
}

/// Exchanges messages with the process of `press`. The outer error means that it cannot be started, the inner one that
/// it does not respond.
fn converse<T>(
    press: &mut Option<Press>,
    program: &Program,
    template: &str,
    say: impl Fn(&mut BufWriter<ChildStdin>) -> io::Result<()>,
    hear: impl Fn(&mut BufReader<ChildStdout>) -> io::Result<T>,
) -> Result<Result<T, Error>, Error> {
    if let Some(running) = press {
        match talk(running, program.patience, &say, &hear) {
            Ok(answer) => return Ok(Ok(answer)),
            // The system may have ended an idle process: this document is not the cause.
            Err(WorkerError { asked: false, .. }) => {}
            Err(trouble) => {
                *press = None;
                return Ok(Err(trouble.error));
            }
        }
    }
    *press = None;
    let started = Press::start(program, template).map_err(|error| Error::Failed(error.to_string()))?;
    let answer = talk(press.insert(started), program.patience, &say, &hear);
    Ok(answer.map_err(|trouble| {
        *press = None;
        trouble.error
    }))
}

/// Why there is no response.
struct WorkerError {
    /// Whether the request was sent completely.
    asked: bool,
    error: Error,
}

fn talk<T>(
    press: &mut Press,
    patience: Duration,
    say: impl Fn(&mut BufWriter<ChildStdin>) -> io::Result<()>,
    hear: impl Fn(&mut BufReader<ChildStdout>) -> io::Result<T>,
) -> Result<T, WorkerError> {
    let Press { child, input: to, output } = press;
    let (done, waits) = channel::<()>();
    let mut asked = false;
    let (answer, late) = std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let late = waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
            if late {
                let _ = child.kill();
            }
            late
        });
        let answer = say(to).and_then(|()| {
            asked = true;
            hear(output)
        });
        drop(done);
        (answer, watch.join().unwrap_or(false))
    });
    answer.map_err(|error| {
        let message = match late {
            true => format!("it took more than {} s", patience.as_secs()),
            false => format!("the typesetting process ended: {error}"),
        };
        WorkerError { asked: asked || late, error: Error::Failed(message) }
    })
}

pub(crate) fn ask(to: &mut impl Write, input: Input<'_>) -> io::Result<()> {
    let images: Vec<&str> = input.images.iter().map(|(name, _)| *name).collect();
    let attachment = input.attachment.map(|it| json!([it.name, it.mime, it.description, it.relationship]));
    put(to, json!({"created": input.created, "images": images, "attachment": attachment}).to_string().as_bytes())?;
    put(to, input.data)?;
    for (_, image) in input.images {
        put(to, image)?;
    }
    put(to, input.attachment.map_or(&[], |it| &it.bytes))?;
    to.flush()
}

pub(crate) fn hear(from: &mut impl Read, input: Input<'_>) -> io::Result<Result<Pdf, Error>> {
    let head: Value = serde_json::from_slice(&take(from)?)?;
    let bytes = take(from)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    if let Some(error) = head.get("error") {
        return Ok(Err(match text(&error[0]).as_str() {
            "data" => Error::Data(text(&error[2])),
            "failed" => Error::Failed(text(&error[2])),
            _ => Error::Template(error[1].as_u64().and_then(|line| usize::try_from(line).ok()), text(&error[2])),
        }));
    }
    let dropped = head["dropped"].as_array().into_iter().flatten();
    let named = |name: &Value| input.images.iter().map(|(own, _)| *own).find(|own| Some(*own) == name.as_str());
    Ok(Ok(Pdf {
        bytes,
        pages: head["pages"].as_u64().and_then(|pages| usize::try_from(pages).ok()).unwrap_or_default(),
        replaced: text(&head["replaced"]).chars().collect(),
        dropped: dropped.filter_map(named).collect(),
        conformance: if head["accessible"] == true { Conformance::Accessible } else { Conformance::Basic },
    }))
}

pub(crate) fn ask_to_redraw(to: &mut impl Write, picture: &[u8]) -> io::Result<()> {
    put(to, json!({"redraw": true}).to_string().as_bytes())?;
    put(to, picture)?;
    to.flush()
}

pub(crate) fn hear_redrawn(from: &mut impl Read) -> io::Result<Result<Vec<u8>, Refusal>> {
    let head: Value = serde_json::from_slice(&take(from)?)?;
    let bytes = take(from)?;
    Ok(match head["refused"].as_str() {
        None => Ok(bytes),
        Some("colours") => Err(Refusal::Colours),
        Some(_) => Err(Refusal::Unreadable),
    })
}

fn redrawn(picture: &[u8]) -> (Value, Vec<u8>) {
    match redraw::accept(picture) {
        Ok(bytes) => (json!({}), bytes),
        Err(Refusal::Colours) => (json!({"refused": "colours"}), Vec::new()),
        Err(Refusal::Unreadable) => (json!({"refused": "unreadable"}), Vec::new()),
    }
}

/// The main loop of the process: handles documents and images from `from` until the input ends.
pub fn work(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let template = String::from_utf8(take(&mut from)?).map_err(io::Error::other)?;
    let typesetter = Typesetter::alone(&template).map_err(io::Error::other)?;
    let mut names = Vec::new();
    loop {
        let head = match take(&mut from) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            head => serde_json::from_slice::<Value>(&head?)?,
        };
        let data = take(&mut from)?;
        if head["redraw"] == true {
            let (head, bytes) = redrawn(&data);
            put(&mut to, head.to_string().as_bytes())?;
            put(&mut to, &bytes)?;
            to.flush()?;
            continue;
        }
        let mut images = Vec::new();
        for name in head["images"].as_array().into_iter().flatten() {
            images.push((constant(name.as_str().unwrap_or_default(), &mut names), take(&mut from)?));
        }
        let attached = take(&mut from)?;
        let text = |part: usize| head["attachment"][part].as_str().unwrap_or_default().to_string();
        let attachment = head["attachment"].is_array().then(|| Attachment {
            name: text(0),
            mime: text(1),
            description: text(2),
            relationship: constant(&text(3), &mut names),
            bytes: attached,
        });
        let created = head["created"].as_i64().unwrap_or_default();
        let input = Input { data: &data, images: &images, attachment: attachment.as_ref(), created };
        let (head, bytes) = match typesetter.typeset(input) {
            Ok(pdf) => {
                let replaced: String = pdf.replaced.iter().collect();
                let accessible = pdf.conformance == Conformance::Accessible;
                let head = json!({
                    "pages": pdf.pages, "replaced": replaced, "dropped": pdf.dropped, "accessible": accessible,
                });
                (head, pdf.bytes)
            }
            Err(error) => {
                let told = match error {
                    Error::Template(line, message) => json!(["template", line, message]),
                    Error::Data(message) => json!(["data", null, message]),
                    other => json!(["failed", null, other.to_string()]),
                };
                (json!({"error": told}), Vec::new())
            }
        };
        put(&mut to, head.to_string().as_bytes())?;
        put(&mut to, &bytes)?;
        to.flush()?;
    }
}

/// Returns the static string of a name: the process uses only a few.
fn constant(name: &str, names: &mut Vec<&'static str>) -> &'static str {
    if let Some(known) = names.iter().find(|known| **known == name) {
        return known;
    }
    let new: &'static str = Box::leak(name.to_string().into_boxed_str());
    names.push(new);
    new
}

pub(crate) fn put(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other("it is too long"))?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(bytes)
}

fn take(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other("it is too long"));
    }
    let mut bytes = Vec::new();
    let read = from.take(length.into()).read_to_end(&mut bytes)?;
    if read < length as usize { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}
