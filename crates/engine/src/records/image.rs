//! A record as its events and responses show it.

use store::Tx;

use crate::call::{Answer, Outcome};
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::log::{self, Event};
use crate::record::{DETAIL, Record, Views};
use crate::tables;

/// A record as its events and `GET` show it, serialized once for all uses of a change: a document may have a thousand
/// rows.
pub struct Image {
    shown: String,
    /// As the log stores it; empty if that is the same.
    logged: String,
}

impl Image {
    /// Of a record as it is now.
    pub fn new<R: Record>(ctx: &Ctx, record: &R) -> Result<Image> {
        let mut data = Vec::with_capacity(512);
        let urls = record.write_json(DETAIL, ctx, &mut data);
        let mut logged = Vec::new();
        if R::is_logged_otherwise() {
            logged.reserve(data.len() + 128);
            record.write_logged(&data, urls, &mut logged);
        }
        let text = |data| String::from_utf8(data).map_err(|_| Error::internal("a response is not valid UTF-8"));
        Ok(Image { shown: text(data)?, logged: text(logged)? })
    }

    /// As [`Image::new`], with one more member: `"name":value`, or empty.
    pub(super) fn with<R: Record>(ctx: &Ctx, record: &R, member: &str) -> Result<Image> {
        let mut image = Image::new(ctx, record)?;
        let texts = [&mut image.shown, &mut image.logged].into_iter();
        for text in texts.filter(|text| !text.is_empty() && !member.is_empty()) {
            text.pop();
            text.push_str(&format!(",{member}}}"));
        }
        Ok(image)
    }

    /// Writes that something happened to the record, which has not changed since.
    pub fn tell<R: Record>(&self, tx: &mut Tx, ctx: &Ctx, record: &R, name: &str) -> Result<()> {
        let event = Event { name, entity_type: R::shape().name, entity_id: &record.base().id, data: &self.shown };
        let logged = if self.logged.is_empty() { &self.shown } else { &self.logged };
        log::append_as(tx, ctx, &event, logged)?;
        tables::notify(tx, ctx, &event)
    }

    /// The answer with the record, which has not changed since.
    pub fn of<R: Record>(self, ctx: &Ctx, record: &R, view: Views) -> Answer {
        if !R::looks_alike(DETAIL, view) {
            return Answer::record(ctx, record, view);
        }
        Answer { version: Some(record.base().version), ..Answer::data(Outcome::Done, self.shown.into_bytes()) }
    }

    /// The answer with the record, of the image that its change left, if it did.
    pub fn answer<R: Record>(image: Option<Image>, ctx: &Ctx, record: &R, view: Views) -> Answer {
        image.map_or_else(|| Answer::record(ctx, record, view), |image| image.of(ctx, record, view))
    }

    /// The answer with a record that was just created, and its location.
    pub fn created<R: Record>(self, ctx: &Ctx, record: &R, view: Views) -> Answer {
        let location = Some(tables::location(record));
        Answer { outcome: Outcome::Created, location, ..self.of(ctx, record, view) }
    }
}
