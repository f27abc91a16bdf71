//! A row of the log, and how others see it.

use store::Row;

use super::event::fired;
use crate::clock::Moment;
use crate::error::Result;
use crate::json::{write_key, write_text};

/// The data of a row in a statement on `log`: its own, or that of the row whose number is in `data_of`. Data of its own
/// count then too, so that the hash tells if somebody adds some.
pub const DATA: &str =
    "CASE WHEN log.data_of = 0 THEN log.data ELSE log.data || coalesce((SELECT shown.data FROM log shown
     WHERE shown.account_id = log.account_id AND shown.seq = log.data_of), '') END";

/// The length of the data, for which neither database reads them: a row may have megabytes.
pub(super) const LENGTH: &str =
    "CAST(CASE WHEN data_of = 0 THEN octet_length(data) ELSE coalesce((SELECT octet_length(shown.data)
     FROM log shown WHERE shown.account_id = log.account_id AND shown.seq = log.data_of), 0) END AS BIGINT)";

/// A row of the log.
pub struct Line {
    /// Its number in the account, from 1 on without gaps.
    pub seq: i64,
    pub(super) at: i64,
    /// `product.created`
    pub name: String,
    pub(super) entity_type: String,
    pub(super) entity_id: String,
    pub(super) actor: String,
    pub(super) actor_type: String,
    pub(super) actor_name: String,
    pub(super) request_id: String,
    pub(super) data: String,
    pub(super) hash: Vec<u8>,
    pub(super) version: i64,
    /// The salt, with the mark behind it.
    pub(super) salt: Vec<u8>,
    /// The digest of data that were erased, or empty.
    pub(super) digest: Vec<u8>,
}

impl Line {
    /// The columns of `from_row`.
    pub(super) fn columns() -> String {
        format!(
            "seq, at, type, entity_type, entity_id, actor, actor_type, actor_name, request_id, {DATA}, hash,
                 version, salt, digest"
        )
    }

    pub(super) fn from_row(row: &Row) -> Result<Line> {
        Ok(Line {
            seq: row.int(0)?,
            at: row.int(1)?,
            name: row.text(2)?.to_string(),
            entity_type: row.text(3)?.to_string(),
            entity_id: row.text(4)?.to_string(),
            actor: row.text(5)?.to_string(),
            actor_type: row.text(6)?.to_string(),
            actor_name: row.text(7)?.to_string(),
            request_id: row.text(8)?.to_string(),
            data: row.text(9)?.to_string(),
            hash: row.bytes(10)?.to_vec(),
            version: row.int(11)?,
            salt: row.bytes(12)?.to_vec(),
            digest: row.bytes(13)?.to_vec(),
        })
    }

    /// The kind of record that it is about.
    pub fn entity_type(&self) -> &str {
        &self.entity_type
    }

    /// The record that it is about.
    pub fn entity_id(&self) -> &str {
        &self.entity_id
    }

    /// Who caused it: the id of the actor.
    pub fn actor(&self) -> &str {
        &self.actor
    }

    /// Whether its data show the record as it was right after.
    pub fn shows_record(&self) -> bool {
        self.name != fired()
    }

    /// Whether its data were erased.
    pub fn is_erased(&self) -> bool {
        !self.digest.is_empty()
    }

    /// Returns the record after the change as the log stores it, or the data of a fired event.
    pub fn data(&self) -> &str {
        &self.data
    }

    /// What others are sent: what happened, when, to what, its number, and who did it; `data` is the record as they see it.
    pub fn payload(&self, data: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(data.len() + 256);
        payload(&mut out, &self.name, Moment(self.at), data, self.seq);
        self.write_actor(&mut out);
        out.push(b'}');
        out
    }

    /// Writes the event as the change feed and the stream show it: the payload, with the record and the actor.
    pub fn write_change(&self, data: &str, out: &mut Vec<u8>) {
        payload(out, &self.name, Moment(self.at), data, self.seq);
        for (name, text) in [("entity_type", &self.entity_type), ("entity_id", &self.entity_id)] {
            write_key(out, name);
            write_text(out, text);
        }
        self.write_actor(out);
        out.push(b'}');
    }

    fn write_actor(&self, out: &mut Vec<u8>) {
        for (name, text) in [("actor", &self.actor), ("actor_type", &self.actor_type), ("actor_name", &self.actor_name)]
        {
            write_key(out, name);
            write_text(out, text);
        }
    }
}

/// `{"type":…,"timestamp":…,"data":…,"seq":…` in this order, without its end.
pub fn payload(out: &mut Vec<u8>, name: &str, at: Moment, data: &str, seq: i64) {
    out.extend_from_slice(b"{\"type\":");
    write_text(out, name);
    let rest = format!(",\"timestamp\":\"{at}\",\"data\":{},\"seq\":{seq}", if data.is_empty() { "{}" } else { data });
    out.extend_from_slice(rest.as_bytes());
}
