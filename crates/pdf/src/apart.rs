//! Typesets documents in separate processes, which can run out of memory, stack or time without affecting this one. A
//! process is reused for the next document.

use std::io::{self, Read, Write};

use confined::{Ended, Program, Worker, put, take};
use serde_json::{Value, json};

use crate::{Attachment, Conformance, Error, Input, Pdf, Typesetter};

/// A running process.
pub(crate) struct Press(Worker);

impl Press {
    fn start(program: &Program, template: &str) -> io::Result<Press> {
        let mut worker = Worker::start(program)?;
        worker.send(template.as_bytes()).map_err(|ended| io::Error::other(ended.to_string()))?;
        Ok(Press(worker))
    }
}

/// Typesets a document in the process of `press`, which is started if necessary.
pub(crate) fn typeset(
    press: &mut Option<Press>,
    program: &Program,
    template: &str,
    input: Input<'_>,
) -> Result<Pdf, Error> {
    if let Some(running) = press {
        match talk(running, program, input) {
            Ok(answer) => return answer,
            // The system may have ended an idle process: this document is not the cause.
            Err(WorkerError { asked: false, .. }) => {}
            Err(trouble) => {
                *press = None;
                return Err(trouble.error);
            }
        }
    }
    *press = None;
    let started = Press::start(program, template).map_err(|error| Error::Failed(error.to_string()))?;
    talk(press.insert(started), program, input).unwrap_or_else(|trouble| {
        *press = None;
        Err(trouble.error)
    })
}

/// Why there is no response.
struct WorkerError {
    /// Whether the request was sent completely.
    asked: bool,
    error: Error,
}

fn talk(press: &mut Press, program: &Program, input: Input<'_>) -> Result<Result<Pdf, Error>, WorkerError> {
    let mut asked = false;
    let answer = press.0.talk(program.patience, &|| true, |to, from| {
        ask(to, input)?;
        asked = true;
        hear(from, input)
    });
    answer.map_err(|ended| {
        let message = match &ended {
            Ended::Gone(error) => format!("the typesetting process ended: {error}"),
            ended => ended.to_string(),
        };
        WorkerError { asked: asked || matches!(ended, Ended::Late(_)), error: Error::Failed(message) }
    })
}

pub(crate) fn ask(to: &mut dyn Write, input: Input<'_>) -> io::Result<()> {
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

pub(crate) fn hear(from: &mut dyn Read, input: Input<'_>) -> io::Result<Result<Pdf, Error>> {
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

/// The main loop of the process: handles documents from `from` until the input ends.
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
