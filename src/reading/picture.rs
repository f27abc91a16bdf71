//! Re-encoding an image.

use confined::take;
use engine::app::App;
use engine::context::Actor;
use engine::error::Result;
use pdf::Refusal;
use serde_json::json;

use super::{Reader, Source, Trouble};

/// Decodes a PNG or JPEG within limits and re-encodes it without profiles and other metadata, when it is the account's turn. An
/// image that exceeds the limits of the process is rejected.
pub fn redraw(app: &App, caller: &Actor, source: &Source) -> Result<Result<Vec<u8>, Refusal>> {
    let reader = app.services.get::<Reader>();
    let turn = super::take(&reader.pictures, caller)?;
    let drawn = reader.start(app, caller, json!({"task": "picture"}), source).and_then(|mut reading| {
        reading.hear(|from| {
            let refused = take(from)?;
            let drawn = take(from)?;
            Ok(match refused.as_slice() {
                b"" => Ok(drawn),
                b"colours" => Err(Refusal::Colours),
                _ => Err(Refusal::Unreadable),
            })
        })
    });
    drop(turn);
    match drawn {
        Ok(drawn) => Ok(drawn),
        Err(Trouble::Ours(error)) => Err(error),
        Err(_) => Ok(Err(Refusal::Unreadable)),
    }
}
