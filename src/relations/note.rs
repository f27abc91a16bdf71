//! Notes.

use engine::context::Ctx;
use engine::error::Result;
use engine::record::{ALL, CREATED, DETAIL, INPUT, LIST, Link, Model, REQUIRED, UPDATED};
use engine::resource::Resource;
use engine::slice::Slice;
use engine::tables::Relink;
use engine::{record, records};
use store::{Migration, Tx};

record! {
    /// A note about a client, an invoice, a project or a deal.
    pub struct Note = "note" in "notes",
        created_at: ALL,
        updated_at: LIST.and(DETAIL).and(UPDATED),
        meta: LIST.and(DETAIL).and(UPDATED);

    /// The text of the note.
    body: String = REQUIRED.long().shown(LIST.and(DETAIL).and(CREATED).and(UPDATED))
        .example("\"Asked for a quote by Friday.\"");
    /// The client that the note is about.
    client_id: Link = ABOUT.refers("clients");
    /// The invoice that the note is about.
    invoice_id: Link = ABOUT.refers("invoices");
    /// The project that the note is about.
    project_id: Link = ABOUT.refers("projects");
    /// The deal that the note is about.
    deal_id: Link = ABOUT.refers("deals");
}

/// The subject of a note is set once, on creation.
const ABOUT: record::Rules = INPUT.create_only().filter().in_meta();

impl Model for Note {}

/// Changes a link of notes whose record is deleted or merged. A note about a deleted client and nothing else goes with it: it
/// may be about a person.
fn relink(tx: &mut Tx, ctx: &Ctx, link: &Relink, slice: &Slice) -> Result<bool> {
    records::relink_with::<Note>(tx, ctx, link, slice, |tx, ctx, before, note| {
        let about = [&note.client_id, &note.invoice_id, &note.project_id, &note.deal_id];
        if link.field == "client_id" && about.iter().all(|link| link.0.is_empty()) {
            return records::remove(tx, ctx, before);
        }
        records::update(tx, ctx, before, note, "updated")
    })
}

/// The resource of notes.
pub fn resource() -> Resource {
    Resource::of::<Note>("Notes", "notes", MIGRATIONS)
        .relinked(relink)
        .list::<Note>()
        .create::<Note>()
        .get::<Note>()
        .extension()
        .patch::<Note>()
        .delete::<Note>()
}

const MIGRATIONS: &[Migration] = &[Migration {
    number: 25,
    name: "notes",
    sql: "
CREATE TABLE notes (
    account_id BIGINT NOT NULL REFERENCES accounts (id),
    id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    body TEXT NOT NULL,
    client_id TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    project_id TEXT NOT NULL,
    deal_id TEXT NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;
CREATE INDEX notes_created ON notes (account_id, created_at, id);
CREATE INDEX notes_client ON notes (account_id, client_id, created_at, id);
CREATE INDEX notes_invoice ON notes (account_id, invoice_id, created_at, id);
CREATE INDEX notes_project ON notes (account_id, project_id, created_at, id);
CREATE INDEX notes_deal ON notes (account_id, deal_id, created_at, id);
",
}];
