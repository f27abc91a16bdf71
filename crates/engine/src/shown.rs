//! Log lines as callers see them. A line stores every column of its record, and no URLs; the view is made on the way out.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::clock::Moment;
use crate::context::Ctx;
use crate::json::{write_name, write_text};
use crate::log::Line;
use crate::record::{DETAIL, HIDDEN, ShownUrl};
use crate::site::Site;
use crate::tables;

/// For whom lines are shown, and when: URLs are signed for them.
#[derive(Clone)]
pub struct Viewer {
    /// The account.
    pub account: i64,
    /// The machine's time.
    pub now: Moment,
    /// The public address of this server.
    pub site: Arc<Site>,
    /// Whether they have a scope.
    pub may: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Viewer {
    /// Returns the viewer of a request.
    pub fn of(ctx: &Ctx) -> Viewer {
        let key = ctx.key.clone();
        let may = Arc::new(move |scope: &str| key.as_ref().is_none_or(|key| key.may(scope)));
        Viewer { account: ctx.account, now: ctx.machine_now, site: ctx.site.clone(), may }
    }

    /// Returns what others are sent about a line.
    pub fn payload(&self, line: &Line) -> Vec<u8> {
        line.payload(&data(self, line.entity_type(), line.data()))
    }

    /// Writes a line as the change feed and the stream show it.
    pub fn write_change(&self, line: &Line, out: &mut Vec<u8>) {
        line.write_change(&data(self, line.entity_type(), line.data()), out);
    }

    /// Returns a URL of a record with these values; empty if they may not see it.
    fn url(&self, url: &ShownUrl, value: impl Fn(&str) -> String) -> String {
        match url.is_for(|scope| (self.may)(scope), &value) {
            true => url.url(&self.site, self.account, self.now, &url.path_with(value)),
            false => String::new(),
        }
    }
}

/// Returns the data of a line about this kind of record as the API shows the record.
pub fn data<'d>(viewer: &Viewer, kind: &str, logged: &'d str) -> Cow<'d, str> {
    let Some(rest) = logged.strip_prefix(HIDDEN) else { return Cow::Borrowed(logged) };
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
    let hidden = values.next().and_then(Result::ok);
    let members = rest.get(values.byte_offset()..).and_then(|rest| rest.strip_prefix(','));
    // Whatever cannot be read is not shown.
    let (Some(hidden), Some(members)) = (hidden, members) else { return Cow::Borrowed("") };
    let mut out = Vec::with_capacity(logged.len() + 256);
    out.push(b'{');
    out.extend_from_slice(members.as_bytes());
    let shape = tables::of_kind(kind).map(|table| table.shape);
    for url in shape.into_iter().flat_map(|shape| shape.addresses).filter(|url| url.views.includes(DETAIL)) {
        let shown = viewer.url(url, |name| value(hidden.get(), members, name));
        out.pop();
        write_name(&mut out, url.name);
        write_text(&mut out, &shown);
        out.push(b'}');
    }
    String::from_utf8(out).map_or(Cow::Borrowed(""), Cow::Owned)
}

/// The signed URLs of a kind of record.
fn signed_urls(kind: &str) -> impl Iterator<Item = &'static ShownUrl> {
    let shape = tables::of_kind(kind).map(|table| table.shape);
    shape.into_iter().flat_map(|shape| shape.addresses).filter(|url| url.signed && url.views.includes(DETAIL))
}

/// Removes the signed URLs from a record as the API shows it: they expire, and a line of the log does not.
pub fn without_signed_urls<'d>(kind: &str, shown: &'d str) -> Cow<'d, str> {
    if signed_urls(kind).next().is_none() {
        return Cow::Borrowed(shown);
    }
    let Ok(Value::Object(mut members)) = serde_json::from_str(shown) else { return Cow::Borrowed(shown) };
    signed_urls(kind).for_each(|url| drop(members.remove(url.name)));
    Cow::Owned(Value::Object(members).to_string())
}

/// Adds the signed URLs to a record as the API shows it.
pub fn with_signed_urls<'d>(viewer: &Viewer, kind: &str, shown: &'d str) -> Cow<'d, str> {
    if signed_urls(kind).next().is_none() {
        return Cow::Borrowed(shown);
    }
    let Ok(Value::Object(mut members)) = serde_json::from_str(shown) else { return Cow::Borrowed(shown) };
    // Without a record there is nothing to lead to.
    if members.get("id").and_then(|id| id.as_str()).is_none_or(str::is_empty) {
        return Cow::Borrowed(shown);
    }
    for url in signed_urls(kind) {
        let shown = viewer.url(url, |name| of_record(&members, name).unwrap_or_default());
        members.insert(url.name.to_string(), shown.into());
    }
    Cow::Owned(Value::Object(members).to_string())
}

/// Returns the text of a column, hidden or not.
fn value(hidden: &str, members: &str, name: &str) -> String {
    let of = |json: &str| of_record(serde_json::from_str::<Value>(json).ok()?.as_object()?, name);
    of(hidden).or_else(|| of(&format!("{{{members}"))).unwrap_or_default()
}

/// Returns the text of a member of a record, or of its `meta`. That of `meta` wins, since whoever fires an event can add members
/// beside it; but the id is never there.
fn of_record(members: &Map<String, Value>, name: &str) -> Option<String> {
    let of = |members: &Map<String, Value>| members.get(name)?.as_str().map(str::to_string);
    let meta = members.get("meta").and_then(Value::as_object).filter(|_| name != "id");
    meta.and_then(of).or_else(|| of(members))
}
