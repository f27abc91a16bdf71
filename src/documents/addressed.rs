//! The client of a document as it is now: a mail addresses it, and a draft is printed with it. A final document keeps the client
//! that it was printed with, whose e-mail address may be out of date.

use engine::context::Ctx;
use engine::error::{Error, Result};
use engine::record::{Record, Snapshot};
use engine::records;
use store::Tx;

use super::send_type::SendType;
use super::{Document, DocumentKind, Which};
use crate::relations::client::Client;

impl<K: DocumentKind> Document<K> {
    /// Returns the document with its client as it is now. It is for mail about the document, and is not saved.
    pub fn addressed(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Self> {
        if !self.is_final() {
            return self.with_parties(tx, ctx);
        }
        let mut document = self.clone();
        if self.client_id.0.is_empty() {
            return Ok(document);
        }
        match records::known::<Client>(tx, ctx, &self.client_id.0) {
            Ok(client) => {
                document.take_client(&client);
                document.client = records::known_snapshot(tx, ctx, &*client);
                Ok(document)
            }
            // It was deleted or merged, and the document follows soon.
            Err(Error { code, .. }) if code.class() == engine::error::Class::NotFound => Ok(document),
            Err(error) => Err(error),
        }
    }

    /// Returns a draft with its client and its identity as they are now, to be printed.
    pub(super) fn with_parties(&self, tx: &mut Tx, ctx: &Ctx) -> Result<Self> {
        let mut document = self.clone();
        match document.take_snapshots(tx, ctx) {
            // One of them was deleted or merged, and the document follows soon.
            Err(Error { code, .. }) if code.class() == engine::error::Class::NotFound => {
                (document.client_id, document.corporate_identity_id) = Default::default();
                document.take_snapshots(tx, ctx)?;
            }
            taken => taken?,
        }
        Ok(document)
    }

    /// The copies of its client and its identity, with their columns.
    pub(super) fn copies(&self) -> [(&'static str, &Snapshot); 2] {
        [("client", &self.client), ("sender", &self.sender)]
    }

    /// Rejects a document with a copy that is not readable: it is neither printed nor changed.
    pub(super) fn check_copies(&self) -> Result<()> {
        for (column, copy) in self.copies() {
            copy.check().map_err(|error| error.at(Self::shape().table, &self.base.id, column))?;
        }
        Ok(())
    }

    /// Copies the names and the address of a client.
    pub(super) fn take_client(&mut self, client: &Client) {
        self.client_company_name.clone_from(&client.company_name);
        self.client_firstname.clone_from(&client.firstname);
        self.client_lastname.clone_from(&client.lastname);
        self.client_email.clone_from(&client.email.0);
    }

    /// Returns the client's address for this type of mail.
    pub(super) fn addressee(&self, kind: SendType) -> String {
        let client = self.client.json();
        let own = match kind {
            _ if kind.is_reminder() => client["email_reminders"].as_str(),
            _ if K::WHICH == Which::Invoice => client["email_invoices"].as_str(),
            _ => None,
        };
        own.filter(|own| !own.is_empty()).unwrap_or(&self.client_email).to_string()
    }
}
