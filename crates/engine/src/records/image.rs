//! A record as its events and responses show it.

use store::Tx;

use crate::call::{Answer, Outcome};
use crate::context::Ctx;
use crate::error::{Error, Result};
use crate::log::{self, Event};
use crate::record::{AnyRecord, DETAIL, Views, write_json, write_logged};
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
    pub fn new(ctx: &Ctx, record: &dyn AnyRecord) -> Result<Image> {
        let mut data = Vec::with_capacity(512);
        let urls = write_json(record, DETAIL, ctx, &mut data);
        let mut logged = Vec::new();
        if record.layout().is_logged_otherwise() {
            logged.reserve(data.len() + 128);
            write_logged(record, &data, urls, &mut logged);
        }
        let text = |data| String::from_utf8(data).map_err(|_| Error::internal("a response is not valid UTF-8"));
        Ok(Image { shown: text(data)?, logged: text(logged)? })
    }

    /// As [`Image::new`], with one more member: `"name":value`, or empty.
    pub(super) fn with(ctx: &Ctx, record: &dyn AnyRecord, member: &str) -> Result<Image> {
        let mut image = Image::new(ctx, record)?;
        let texts = [&mut image.shown, &mut image.logged].into_iter();
        for text in texts.filter(|text| !text.is_empty() && !member.is_empty()) {
            text.pop();
            text.push_str(&format!(",{member}}}"));
        }
        Ok(image)
    }

    /// Writes that something happened to the record, which has not changed since.
    pub fn tell(&self, tx: &mut Tx, ctx: &Ctx, record: &dyn AnyRecord, name: &str) -> Result<()> {
        let (entity_type, entity_id) = (record.layout().shape.name, record.common().id.as_str());
        let event = Event { name, entity_type, entity_id, data: &self.shown };
        let logged = if self.logged.is_empty() { &self.shown } else { &self.logged };
        log::append_as(tx, ctx, &event, logged)?;
        tables::notify(tx, ctx, &event)
    }

    /// The answer with the record, which has not changed since.
    pub fn of(self, ctx: &Ctx, record: &dyn AnyRecord, view: Views) -> Answer {
        if !record.layout().looks_alike(DETAIL, view) {
            return Answer::record(ctx, record, view);
        }
        Answer { version: Some(record.common().version), ..Answer::data(Outcome::Done, self.shown.into_bytes()) }
    }

    /// The answer with the record, of the image that its change left, if it did.
    pub fn answer(image: Option<Image>, ctx: &Ctx, record: &dyn AnyRecord, view: Views) -> Answer {
        image.map_or_else(|| Answer::record(ctx, record, view), |image| image.of(ctx, record, view))
    }

    /// The answer with a record that was just created, and its location.
    pub fn created(self, ctx: &Ctx, record: &dyn AnyRecord, view: Views) -> Answer {
        let location = Some(tables::location(record));
        Answer { outcome: Outcome::Created, location, ..self.of(ctx, record, view) }
    }
}
